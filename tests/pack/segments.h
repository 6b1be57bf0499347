#pragma once
#include <memory>
#include <vector>

#include "base/flow/segment.h"

namespace rematch::test {

/// A segment of `len` tokens of sample `id`.
inline std::shared_ptr<const Segment> segment_of(int64_t id, int len) {
  Segment segment;
  segment.sample_id = id;
  segment.token_ids.assign(static_cast<size_t>(len), 1);
  return std::make_shared<const Segment>(std::move(segment));
}

/// Segments with ids `first_id`, `first_id` + 1, ….
inline std::vector<std::shared_ptr<const Segment>> segments_of(int64_t first_id,
                                                               const std::vector<int>& lens) {
  std::vector<std::shared_ptr<const Segment>> segments;
  for (const int len : lens) segments.push_back(segment_of(first_id++, len));
  return segments;
}

inline std::vector<int64_t> ids_of(const std::vector<std::shared_ptr<const Segment>>& segments) {
  std::vector<int64_t> ids;
  for (const auto& segment : segments) ids.push_back(segment->sample_id);
  return ids;
}

}  // namespace rematch::test
