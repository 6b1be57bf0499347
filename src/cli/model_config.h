#pragma once
#include "cli/commands.h"
#include "config/config.h"

namespace rematch {

/// The configuration of a command that asks a checkpoint about records: CONFIG as it is written, or
/// a model directory with a JSONL, which need none: prompts and answer length are then those of the
/// checkpoint (rematch_prompt.json), everything else has its default.
/// @throws UserError (config) as load_config(), and for a model directory without a JSONL
ConfigResult load_evaluation_config(const RunArguments& arguments);

}  // namespace rematch
