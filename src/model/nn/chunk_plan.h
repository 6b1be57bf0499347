#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// Cuts the segments of a varlen row into chunks of equal length, so that a recurrence over tokens
/// becomes one over chunks. No chunk contains tokens of two segments; the last chunk of a segment
/// is padded at its end. Step c of the recurrence handles chunk c of all segments that have one:
/// chunks are ordered by step, then by segment, and segments by falling number of chunks, so the
/// segments of a step are the first ones of the step before.
class ChunkPlan {
 public:
  static constexpr int64_t kChunk = 64;  ///< tokens in a chunk

  /// @param lens  lengths of consecutive segments, each ≥ 0
  ChunkPlan(const std::vector<int64_t>& lens, at::Device device);

  int64_t num_steps() const { return std::ssize(begins_) - 1; }
  int64_t num_chunks() const { return begins_.back(); }
  /// First chunk of a step; num_chunks() for num_steps().
  int64_t begin(int64_t step) const { return begins_[step]; }
  /// Chunks of a step, which is also the number of segments with more than `step` chunks.
  int64_t count(int64_t step) const { return begin(step + 1) - begin(step); }
  /// Segment of each row of states, by falling number of chunks; without empty segments.
  const std::vector<int64_t>& segment_order() const { return segment_order_; }

  /// Rows [T, ...] of the given chunks, [count, kChunk, ...]; padding repeats a row of the segment.
  at::Tensor to_chunks(const at::Tensor& rows, int64_t first_chunk, int64_t count) const;
  /// The same with zeros for padding.
  at::Tensor to_zeroed_chunks(const at::Tensor& rows, int64_t first_chunk, int64_t count) const;
  /// Rows [T, ...] of all chunks [num_chunks · kChunk, ...].
  at::Tensor from_chunks(const at::Tensor& chunks) const;

 private:
  std::vector<int64_t> begins_{0};
  std::vector<int64_t> segment_order_;
  at::Tensor row_of_slot_;  ///< [num_chunks · kChunk] int64; undefined if slots are the rows
  at::Tensor slot_of_row_;  ///< [T] int64; undefined if slots are the rows
  at::Tensor is_padding_;   ///< [num_chunks · kChunk] bool; undefined without padding
};

}  // namespace rematch
