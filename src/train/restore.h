#pragma once
#include <cstdint>
#include <string>

#include "train/loop.h"
#include "resume/run_state.h"

namespace rematch {

/// What a checkpoint must keep of a run's parts besides weights and optimizer tensors.
RunState capture(const TrainParts& parts, const Fingerprint& fingerprint);

/// Puts a run's parts where a checkpoint left them: optimizer, schedule, data stream, open window, carry buffer, trainer state.
/// The weights were loaded from the checkpoint before. What the configuration says of the run's length and rhythm stays as it says.
/// @throws UserError (data) when the checkpoint does not fit the parts
void restore(LoadedCheckpoint loaded, TrainParts& parts);

}  // namespace rematch
