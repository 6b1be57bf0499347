#include "engine/rollout/native/cpu/vision_spans.h"

#include <algorithm>

#include "model/kernels/attention.h"

namespace rematch {

CpuVisionSpans::CpuVisionSpans(const std::vector<int64_t>& lens) {
  for (const int64_t len : lens) {
    const Span span{.first_row = std::ssize(places_), .len = len, .first_block = num_blocks_};
    for (int64_t first = 0; first < len; first += kernels::kAttentionQueries) {
      tasks_.push_back({span, {first, std::min(first + kernels::kAttentionQueries, len)}});
    }
    for (int64_t i = 0; i < len; ++i) places_.push_back(num_blocks_ * kBlockLen + i);
    num_blocks_ += (len + kBlockLen - 1) / kBlockLen;
  }
}

}  // namespace rematch
