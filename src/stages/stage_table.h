#pragma once
#include <string>
#include <vector>

#include "stages/stage.h"

namespace rematch {

/// Stages of `rematch`: parse, match, segment and pack, which Python offers as well.
const std::vector<StageRow>& public_stages();

/// Row of a stage. The message for a tool that only `rematch-stages` has names that program.
/// @param program  "rematch" or "rematch-stages", for messages
/// @throws UserError (config) with did-you-mean for an unknown name
const StageRow& find_stage(const std::vector<StageRow>& table, const std::string& name,
                           const std::string& program);

}  // namespace rematch
