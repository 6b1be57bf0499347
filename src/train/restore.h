#pragma once
#include <string>

#include "resume/run_state.h"
#include "train/loop.h"

namespace rematch {

/// Saves everything that a resume needs, as a checkpoint of the current step: weights, optimizer,
/// place in the data, open window, carry buffer, trainer state. @return its path; @throws UserError
/// (environment)
std::string save_checkpoint(TrainParts& parts);

/// Restores a run's parts from a checkpoint: optimizer, schedule, data stream, open window, carry
/// buffer, trainer state. The weights are already loaded from the checkpoint. The configured length
/// and cadence of the run are kept.
/// @throws UserError (data) when the checkpoint does not match the parts
void restore(LoadedCheckpoint loaded, TrainParts& parts);

}  // namespace rematch
