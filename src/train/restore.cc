#include "train/restore.h"

#include <utility>

namespace rematch {

RunState capture(const TrainParts& parts, const Fingerprint& fingerprint) {
  return {.num_steps = parts.mstep.num_steps(),
          .cursor = parts.windows.cursor(),
          .open = parts.buffer.state(),
          .waiting = parts.packer.waiting(),
          .packing = parts.packer.summary(),
          .evaluation_pending = parts.evaluation_pending,
          .fingerprint = fingerprint};
}

void restore(ResumePoint point, TrainParts& parts) {
  parts.mstep.optimizer().load_state(point.optimizer, point.run.num_steps);
  parts.windows.seek(point.run.cursor);
  parts.buffer.restore(std::move(point.run.open));
  parts.packer.restore(std::move(point.run.waiting), point.run.packing);
  parts.evaluation_pending = point.run.evaluation_pending;
  TrainerState& state = parts.state;
  state.global_step = point.trainer.global_step;
  state.epoch = point.trainer.epoch;
  state.num_input_tokens_seen = point.trainer.num_input_tokens_seen;
  state.best_metric = point.trainer.best_metric;
  state.best_global_step = point.trainer.best_global_step;
  state.best_model_checkpoint = std::move(point.trainer.best_model_checkpoint);
  state.log_history = std::move(point.trainer.log_history);
}

}  // namespace rematch
