#include <fmt/core.h>

#include "base/error.h"
#include "mstep/loss/losses.h"

namespace rematch {
namespace {

void add_segment(const Segment& segment, int64_t offset, RowSupervision& row) {
  REMATCH_CHECK(segment.labels.size() == segment.token_ids.size(),
                fmt::format("{}: {} labels, {} tokens", segment.where, segment.labels.size(), segment.token_ids.size()));
  for (size_t i = 0; i < segment.labels.size(); ++i) {
    if (segment.labels[i] == kIgnoreLabel) continue;
    // The first position has no logits of its own segment before it.
    REMATCH_CHECK(i > 0 && segment.labels[i] >= 0, fmt::format("{}: label {} at position {}", segment.where, segment.labels[i], i));
    row.ce_positions.push_back(offset + static_cast<int64_t>(i));
    row.ce_labels.push_back(segment.labels[i]);
  }
  for (const CoordSlot& slot : segment.coord_slots) {
    REMATCH_CHECK(slot.position > 0 && slot.position < segment.encoded_len() && slot.bin >= 0 && slot.bin < kNumBins,
                  fmt::format("{}: slot of bin {} at position {} of {}", segment.where, slot.bin, slot.position, segment.encoded_len()));
    row.slot_positions.push_back(offset + slot.position);
    row.slot_bins.push_back(slot.bin);
    row.slot_is_prefix.push_back(slot.source == SlotSource::kPrefix);
  }
}

}  // namespace

RowSupervision RowSupervision::from(const PackedRow& row) {
  RowSupervision supervision;
  int64_t offset = 0;
  for (const auto& segment : row.segments) {
    add_segment(*segment, offset, supervision);
    offset += segment->encoded_len();
  }
  return supervision;
}

}  // namespace rematch
