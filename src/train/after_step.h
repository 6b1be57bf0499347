#pragma once
#include "train/loop.h"

namespace rematch {

// What the loop does between two optimizer steps. Called on every rank, at the same place.

/// Writes a checkpoint of the run as it is now. @throws UserError (environment) when it cannot be
/// written
void save(TrainParts& parts);

/// Saves the state and rethrows the current exception: an interrupted or failed run keeps
/// everything that a resume needs. When the save fails too, its problems follow those of the
/// exception.
[[noreturn]] void save_and_rethrow(TrainParts& parts);

/// Scores the weights that the run starts from: the reference of its health (docs/health.md).
void evaluate_start(TrainParts& parts);

/// Evaluates and saves what is due after an optimizer step. @return true when the run ends here
/// though steps are left
bool evaluate_and_save(TrainParts& parts, bool evaluation_due, bool save_due);

}  // namespace rematch
