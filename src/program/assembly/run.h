#pragma once
#include "program/assembly/job.h"

namespace rematch {

/// Assembles a training (job, model, optimizer, rollouts, logs, checkpoints) and runs it. Every
/// rank calls it.
/// @param config  a checked configuration, the same on every rank
/// @throws UserError; Interrupted after the state has been saved
void run_training(ConfigResult config, const Place& place);

}  // namespace rematch
