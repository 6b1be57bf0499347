#pragma once
#include "base/enum_names.h"

namespace rematch {

/// Selection of the segments that share a row (`packing_selector`, BEHAVIOUR 9.3).
enum class PackingSelector {
  /// the better of fifo and constant-volume best-fit-decreasing: the specification's rule
  kBinpacking,
  /// exact: largest total, then fewest segments, then the lexicographically smallest indices
  kOptimal,
  kFifo,  ///< the oldest, then every later segment that still fits
};
inline constexpr EnumName<PackingSelector> kPackingSelectors[] = {
    {PackingSelector::kBinpacking, "binpacking"},
    {PackingSelector::kOptimal, "optimal"},
    {PackingSelector::kFifo, "fifo"}};
constexpr std::span<const EnumName<PackingSelector>> names_of(PackingSelector) {
  return kPackingSelectors;
}

/// Which segments may share a row (`post_rollout_pack_scope`).
enum class PackScope {
  /// each micro-batch is a row: packing off, or stage 1 (its data stream is packed already)
  kMicroBatch,
  /// `micro`, the specification's carry mode: after each micro-batch one row is selected, the other
  /// segments keep waiting
  kCarry,
  kWindow,  ///< `window`: as many rows as the window needs, nothing is left waiting
};
inline constexpr EnumName<PackScope> kPackScopes[] = {{PackScope::kCarry, "micro"},
                                                      {PackScope::kWindow, "window"}};
constexpr std::span<const EnumName<PackScope>> names_of(PackScope) { return kPackScopes; }

/// `training.packing*` and stage 2's keys of packing.
struct PackSettings {
  bool enabled = false;
  int buffer = 512;  ///< segments (stage 1: samples) that wait for a row, ≥ 1
  /// (0, 1]; a lower fill gives a warning; in stage 1 such a last row of an epoch is dropped
  double min_fill_ratio = 0.65;
  bool drop_last = true;  ///< stage 1: drop that last row
  PackingSelector selector = PackingSelector::kBinpacking;
  PackScope scope = PackScope::kCarry;  ///< stage 2

  bool operator==(const PackSettings&) const = default;
};

/// `rollout_buffer.*`: one rollout feeds several updates (BEHAVIOUR 10).
struct RolloutBufferSettings {
  bool enabled = false;  ///< tells windows apart in the log
  int m_steps = 1;       ///< value of the key, whether enabled or not

  /// Optimizer steps on a full window.
  int steps_per_window() const { return enabled ? m_steps : 1; }

  bool operator==(const RolloutBufferSettings&) const = default;
};

/// `offload.*`: what is moved to host memory while rollouts are generated (BEHAVIOUR 11).
struct OffloadSettings {
  bool enabled = false;
  bool model = false;      ///< parameters and gradients, when enabled
  bool optimizer = false;  ///< masters and averages, when enabled

  bool moves_model() const { return enabled && model; }
  bool moves_optimizer() const { return enabled && optimizer; }

  bool operator==(const OffloadSettings&) const = default;
};

}  // namespace rematch
