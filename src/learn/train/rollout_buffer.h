#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "base/flow/segment.h"
#include "base/metrics.h"
#include "base/settings/pack.h"
#include "learn/data/windows.h"

namespace rematch {

/// True for a window that rolls out, when only a share of the windows does (BEHAVIOUR 4.8).
/// @param share  `rollout_share`, (0, 1]
bool window_rolls_out(int64_t window_idx, double share);

/// Keeps a window for `m_steps` optimizer steps: one rollout feeds several updates (BEHAVIOUR 10).
/// A partial window is used once.
class RolloutBuffer {
 public:
  /// @param rollout_share  as in window_rolls_out()
  explicit RolloutBuffer(const RolloutBufferSettings& settings, double rollout_share = 1)
      : settings_(settings), rollout_share_(rollout_share) {}

  /// Optimizer steps in an epoch of `num_windows` windows.
  /// @param ends_partial  the last window is partial
  int64_t epoch_steps(int64_t num_windows, bool ends_partial) const {
    return num_windows * settings_.steps_per_window() -
           (ends_partial ? settings_.steps_per_window() - 1 : 0);
  }

  bool is_open() const { return open_.has_value(); }
  void open(OpenWindow window) { open_ = std::move(window); }
  /// The window for an M-step; const, because reuse requires that no step changes it.
  const Window& window() const { return open_->window; }
  /// The current window, for checkpoints; nullopt between two windows.
  const std::optional<OpenWindow>& state() const { return open_; }
  void restore(std::optional<OpenWindow> state) { open_ = std::move(state); }

  /// True when the next step has no E-step.
  bool is_reuse() const { return open_ && open_->completed_steps > 0; }
  /// True when the current window is partial, and so used once instead of `m_steps` times.
  bool is_cut_short() const {
    return open_ && open_->window.is_partial && settings_.steps_per_window() > 1;
  }

  /// Counts a finished optimizer step, adds the rollout/buffer_* metrics and closes the window
  /// after its last use.
  /// @return true when the step was the last of its epoch
  bool finish_step(MetricsBag& metrics);
  /// Tokens in the rows of the last finished step.
  int64_t last_num_tokens() const { return last_num_tokens_; }

 private:
  RolloutBufferSettings settings_;
  double rollout_share_;
  std::optional<OpenWindow> open_;
  int64_t last_num_tokens_ = 0;
};

}  // namespace rematch
