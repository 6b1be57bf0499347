#pragma once
#include <cstdint>
#include <string>

#include "mstep/optim/adamw.h"
#include "observe/terminal.h"

namespace rematch {

/// Rejects a checkpoint that `training.resume_optimizer_from` cannot use, before a model is loaded.
/// @throws UserError (config) when the directory does not exist, (data) without training state or
/// with a damaged one
void check_carried_optimizer(const std::string& checkpoint_dir);

/// Starts an optimizer with the averages of a checkpoint (`training.resume_optimizer_from`) and
/// says so.
/// @param vocab_size  of the model. @throws UserError as AdamW::carry_averages and read_checkpoint
void carry_optimizer(const std::string& checkpoint_dir, int64_t vocab_size, AdamW& optimizer,
                     Terminal& terminal);

}  // namespace rematch
