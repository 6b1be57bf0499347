#include "learn/train/rollout_buffer.h"

#include <cmath>

#include "base/error.h"

namespace rematch {

bool window_rolls_out(int64_t window_idx, double share) {
  return std::floor((window_idx + 1) * share) > std::floor(window_idx * share);
}

bool RolloutBuffer::finish_step(MetricsBag& metrics) {
  REMATCH_CHECK(open_.has_value(), "a step without a window");
  last_num_tokens_ = 0;
  for (const PackedRow& row : open_->window.rows) last_num_tokens_ += row.total_len();
  if (settings_.enabled) {
    metrics.add("rollout/buffer_reuse", is_reuse() ? 1 : 0);
    metrics.add("rollout/buffer_window_step0", open_->step0);
    metrics.add("rollout/buffer_completed_steps", open_->completed_steps + 1);
    if (is_reuse() && rollout_share_ < 1)
      metrics.add("rollout/is_rollout",
                  window_rolls_out(open_->window.window_idx, rollout_share_) ? 1 : 0);
    // A reused window costs no rollout. Zeros make sums over the log equal the time spent.
    for (const char* name : {"time/rollout_generate_s", "time/rollout_parse_match_s",
                             "time/rollout_teacher_encode_s", "time/post_rollout_pack_s"}) {
      if (is_reuse()) metrics.add(name, 0);
    }
  }
  ++open_->completed_steps;
  const int64_t num_uses = open_->window.is_partial ? 1 : settings_.steps_per_window();
  const bool is_used_up = open_->completed_steps >= num_uses;
  const bool ends_epoch = is_used_up && open_->last_of_epoch;
  if (is_used_up) open_.reset();
  return ends_epoch;
}

}  // namespace rematch
