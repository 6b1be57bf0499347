#pragma once
#include "train/trainer.h"

namespace rematch {

/// Trains until the cadence says stop. The main loop of this program. Continues from
/// the current state of the trainer: at the start, or restored from a checkpoint in the middle of a
/// window. Every rank calls it.
/// @throws UserError; Interrupted after the state has been saved (BEHAVIOUR 17.4)
void train(Trainer& trainer);

}  // namespace rematch
