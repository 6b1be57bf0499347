#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tools/stages/stage.h"

namespace rematch {

// Stages that only tests and scripts use.
std::unique_ptr<Stage> make_tokenize_stage(const StageOptions&);
std::unique_ptr<Stage> make_render_stage(const StageOptions&);
std::unique_ptr<Stage> make_pixels_stage(const StageOptions&);
std::unique_ptr<Stage> make_loss_stage(const StageOptions&);
std::unique_ptr<Stage> make_logits_stage(const StageOptions&);
std::unique_ptr<Stage> make_generate_stage(const StageOptions&);
std::unique_ptr<Stage> make_grad_stage(const StageOptions&);

/// Path of the output file of a line: `directory`/<name>.safetensors.
/// @throws UserError (data) when the name, an id, cannot be a file name
std::string line_file(const std::string& directory, const std::string& name);

/// Stages of `rematch-stages`: the public ones and these, in the order of the loop.
const std::vector<StageRow>& all_stages();

}  // namespace rematch
