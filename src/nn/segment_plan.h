#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// How the segments of a varlen row are put side by side into few batched attention calls: one
/// kernel for 24 segments instead of 24. Segments are grouped by length; inside a group shorter
/// ones are padded at their end, which causal attention never attends to.
class SegmentPlan {
 public:
  struct Group {
    int64_t num_segments = 0;
    int64_t len = 0;        ///< of the longest segment
    int64_t begin_row = 0;  ///< of the group in the grouped layout
  };
  struct Options {
    bool may_pad = false;  ///< only causal attention may
    /// segments up to this length share a group whatever their lengths: calls cost more than
    /// padding
    int64_t always_group_len = 64;
    /// of a padded group's longer segments: shortest length over longest
    double min_fill = 0.85;
  };

  /// @param lens  lengths of consecutive segments, each ≥ 0
  SegmentPlan(const std::vector<int64_t>& lens, const Options& options, at::Device device);

  const std::vector<Group>& groups() const { return groups_; }
  /// True when the grouped layout is the row itself.
  bool is_identity() const { return !grouped_from_row_.defined(); }
  /// Rows [T, ...] in the grouped layout [P, ...]; differentiable.
  at::Tensor to_groups(const at::Tensor& rows) const;
  /// The inverse; padding is dropped. Differentiable.
  at::Tensor from_groups(const at::Tensor& grouped) const;

 private:
  std::vector<Group> groups_;
  /// [P] int64: row behind each grouped row; padding repeats its segment's last row
  at::Tensor grouped_from_row_;
  at::Tensor row_from_grouped_;  ///< [T] int64: the inverse
  at::Tensor is_real_;           ///< [P] bool; undefined without padding
};

}  // namespace rematch
