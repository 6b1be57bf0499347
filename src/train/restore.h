#pragma once
#include <cstdint>
#include <string>

#include "train/loop.h"
#include "resume/run_state.h"

namespace rematch {

/// What a checkpoint keeps of a run's parts in addition to weights and optimizer tensors.
RunState capture(const TrainParts& parts, const Fingerprint& fingerprint);

/// Restores a run's parts from a checkpoint: optimizer, schedule, data stream, open window, carry buffer, trainer state.
/// The weights are already loaded from the checkpoint. The configured length and cadence of the run are kept.
/// @throws UserError (data) when the checkpoint does not match the parts
void restore(LoadedCheckpoint loaded, TrainParts& parts);

}  // namespace rematch
