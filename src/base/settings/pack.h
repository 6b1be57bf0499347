#pragma once
#include "base/enum_names.h"

namespace rematch {

/// The rule that chooses the segments of a row (`packing_selector`, BEHAVIOUR 9.3).
enum class PackingSelector {
  /// the better of fifo and constant-volume best-fit-decreasing, as in the specification
  kBinpacking,
  /// exact: largest total, then fewest segments, then lexicographically smallest indices
  kOptimal,
  kFifo,  ///< the oldest segment, then every later one that still fits
};
constexpr auto names_of(PackingSelector) {
  using enum PackingSelector;
  return std::to_array<EnumName<PackingSelector>>(
      {{kBinpacking, "binpacking"}, {kOptimal, "optimal"}, {kFifo, "fifo"}});
}

/// The segments that may share a row (`post_rollout_pack_scope`).
enum class PackScope {
  /// each micro-batch is a row: packing off, or stage 1 (its data stream is packed already)
  kMicroBatch,
  /// `micro`, the specification's carry mode: each micro-batch puts its segments into the carry
  /// buffer and selects one row
  kCarry,
  kWindow,  ///< `window`: packs all segments of a window into as many rows as needed
};
constexpr auto names_of(PackScope) {
  return std::to_array<EnumName<PackScope>>(
      {{PackScope::kCarry, "micro"}, {PackScope::kWindow, "window"}});
}

/// `training.packing*` and the packing keys of stage 2.
struct PackSettings {
  bool enabled = false;
  int buffer = 512;  ///< most segments (stage 1: samples) that wait for a row, ≥ 1
  /// (0, 1]; a row with a lower fill gives a warning
  double min_fill_ratio = 0.65;
  bool drop_last = true;  ///< stage 1: drop an epoch's last row if its fill is lower
  PackingSelector selector = PackingSelector::kBinpacking;
  PackScope scope = PackScope::kCarry;  ///< stage 2

  bool operator==(const PackSettings&) const = default;
};

/// `rollout_buffer.*`: use of a window for several optimizer steps (BEHAVIOUR 10).
struct RolloutBufferSettings {
  bool enabled = false;  ///< also shows the reuses of a window in the log
  int m_steps = 1;       ///< value of the key, even if not enabled

  /// Optimizer steps on a full window.
  int steps_per_window() const { return enabled ? m_steps : 1; }

  bool operator==(const RolloutBufferSettings&) const = default;
};

/// `offload.*`: training state to move to host memory during rollouts (BEHAVIOUR 11).
struct OffloadSettings {
  bool enabled = false;
  bool model = false;      ///< parameters and gradients, if enabled
  bool optimizer = false;  ///< master weights and averages, if enabled

  bool moves_model() const { return enabled && model; }
  bool moves_optimizer() const { return enabled && optimizer; }

  bool operator==(const OffloadSettings&) const = default;
};

}  // namespace rematch
