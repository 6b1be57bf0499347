#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// Batches the segments of a varlen row into few attention calls, for example one instead of 24.
/// Segments are grouped by length. Shorter segments of a group are padded at the end, where causal
/// attention does not look.
class SegmentPlan {
 public:
  struct Group {
    int64_t num_segments = 0;
    int64_t len = 0;        ///< of the longest segment
    int64_t begin_row = 0;  ///< first row of the group in the grouped layout
  };
  struct Options {
    bool may_pad = false;  ///< allowed for causal attention only
    /// all segments up to this length share a group: a call costs more than padding
    int64_t always_group_len = 64;
    /// for longer segments: least ratio of the shortest to the longest length in a group
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
  /// [P] int64: source row of each grouped row; padding repeats the last row of its segment
  at::Tensor grouped_from_row_;
  at::Tensor row_from_grouped_;  ///< [T] int64: the inverse
  at::Tensor is_real_;           ///< [P] bool; undefined without padding
};

}  // namespace rematch
