#pragma once
#include <memory>
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

/// Stages of `rematch-stages`: the public ones and these, in the order of the loop.
const std::vector<StageRow>& all_stages();

}  // namespace rematch
