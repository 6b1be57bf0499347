#pragma once
#include "learn/train/trainer.h"

namespace rematch {

/// The main loop: trains until the last step. Starts from the trainer's current state, which may be
/// a checkpoint taken in the middle of a window. Every rank calls it.
/// @throws UserError; Interrupted after the state has been saved (BEHAVIOUR 17.4)
void train(Trainer& trainer);

}  // namespace rematch
