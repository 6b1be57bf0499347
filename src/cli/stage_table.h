#pragma once
#include <vector>

#include "cli/stage.h"

namespace rematch {

/// The ONE table of stages, in the order of the loop. Help, option checks and `rematch stage NAME`
/// come from it.
const std::vector<StageRow>& stage_table();

/// Row of a stage. @throws UserError (config) with did-you-mean for an unknown name
const StageRow& find_stage(const std::string& name);

}  // namespace rematch
