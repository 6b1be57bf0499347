#include "train/restore.h"

#include <utility>

namespace rematch {
namespace {

// What a checkpoint keeps of a run's parts in addition to weights and optimizer tensors.
RunState capture(const TrainParts& parts) {
  return {.num_steps = parts.mstep.num_steps(),
          .cursor = parts.windows.cursor(),
          .open = parts.buffer.state(),
          .waiting = parts.packer.waiting(),
          .packing = parts.packer.summary(),
          .evaluation_pending = parts.evaluation_pending,
          .fingerprint = parts.fingerprint};
}

}  // namespace

std::string save_checkpoint(TrainParts& parts) {
  const StatePart part{parts.group.rank(), parts.group.size()};
  return parts.checkpoints.save(
      parts.state,
      [&](const std::string& directory) {
        write_state_part(directory, state_files_of(capture(parts), parts.mstep.state_to_save()),
                         part);
      },
      [&](const std::string& directory) { write_state_manifest(directory, part.size); });
}

void restore(LoadedCheckpoint loaded, TrainParts& parts) {
  parts.mstep.optimizer().load_state(loaded.optimizer, loaded.run.num_steps);
  parts.windows.seek(loaded.run.cursor);
  parts.buffer.restore(std::move(loaded.run.open));
  parts.packer.restore(std::move(loaded.run.waiting), loaded.run.packing);
  parts.evaluation_pending = loaded.run.evaluation_pending;
  TrainerState& state = parts.state;
  state.global_step = loaded.trainer.global_step;
  state.epoch = loaded.trainer.epoch;
  state.num_input_tokens_seen = loaded.trainer.num_input_tokens_seen;
  state.best_metric = loaded.trainer.best_metric;
  state.best_global_step = loaded.trainer.best_global_step;
  state.best_model_checkpoint = std::move(loaded.trainer.best_model_checkpoint);
  state.log_history = std::move(loaded.trainer.log_history);
}

}  // namespace rematch
