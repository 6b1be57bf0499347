#pragma once
#include <string>
#include <vector>

#include "tools/stages/stage.h"

namespace rematch {

/// Stages of `rematch` and of the Python package: parse, match, segment and pack.
const std::vector<StageRow>& public_stages();

/// Finds a stage. For a stage that only `rematch-stages` has, the error names that program.
/// @param program  "rematch" or "rematch-stages", for messages
/// @throws UserError (config) with did-you-mean for an unknown name
const StageRow& find_stage(const std::vector<StageRow>& table, const std::string& name,
                           const std::string& program);

}  // namespace rematch
