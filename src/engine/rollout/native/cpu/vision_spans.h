#pragma once
#include <cstdint>
#include <vector>

#include "model/kernels/types.h"

namespace rematch {

/// Spans of rows that attend only to themselves (frames, or windows of frames) and the places of
/// their keys and values: each span has its own consecutive blocks.
class CpuVisionSpans {
 public:
  static constexpr int64_t kBlockLen = 16;

  CpuVisionSpans() = default;
  /// @param lens  rows of each span, in order
  explicit CpuVisionSpans(const std::vector<int64_t>& lens);

  struct Span {
    int64_t first_row = 0, len = 0, first_block = 0;
  };
  /// Queries of one span that share a pass over its keys.
  struct Task {
    Span span;
    kernels::Range queries;  ///< relative to the span's first row
  };
  const std::vector<Task>& tasks() const { return tasks_; }
  int64_t num_blocks() const { return num_blocks_; }
  /// Block, and slot within it, of a row's key and value.
  int64_t block(int64_t row) const { return places_[row] / kBlockLen; }
  int64_t slot(int64_t row) const { return places_[row] % kBlockLen; }

 private:
  std::vector<Task> tasks_;
  std::vector<int64_t> places_;
  int64_t num_blocks_ = 0;
};

}  // namespace rematch
