#include <fmt/core.h>

#include "base/error.h"
#include "learn/mstep/loss/losses.h"

namespace rematch {
namespace {

void add_labels(const Segment& segment, int64_t offset, RowSupervision& row) {
  REMATCH_CHECK(segment.labels.size() == segment.token_ids.size(),
                fmt::format("{}: {} labels, {} tokens", segment.where, segment.labels.size(),
                            segment.token_ids.size()));
  for (size_t i = 0; i < segment.labels.size(); ++i) {
    if (segment.labels[i] == kIgnoreLabel) continue;
    // The first position has no preceding logits in its segment.
    REMATCH_CHECK(i > 0 && segment.labels[i] >= 0,
                  fmt::format("{}: label {} at position {}", segment.where, segment.labels[i], i));
    KindTargets& targets = row.by_kind[kLabels];
    targets.positions.push_back(offset + i);
    targets.values.push_back(segment.labels[i]);
  }
}

void add_slots(const Segment& segment, int64_t offset, RowSupervision& row) {
  for (const auto& [kind, slots] : segment.slots) {
    REMATCH_CHECK(kind != kLabels, kind);
    for (const Slot& slot : slots) {
      REMATCH_CHECK(slot.position > 0 && slot.position < segment.encoded_len() && slot.target >= 0,
                    fmt::format("{}: {} slot of {} at position {} of {}", segment.where, kind,
                                slot.target, slot.position, segment.encoded_len()));
      KindTargets& targets = row.by_kind[kind];
      targets.positions.push_back(offset + slot.position);
      targets.values.push_back(slot.target);
      targets.is_prefix.push_back(slot.source == SlotSource::kPrefix);
    }
  }
}

}  // namespace

size_t RowSupervision::count(const std::string& kind) const {
  const auto found = by_kind.find(kind);
  return found == by_kind.end() ? 0 : found->second.positions.size();
}

RowSupervision RowSupervision::from(const PackedRow& row) {
  RowSupervision supervision;
  int64_t offset = 0;
  for (const auto& segment : row.segments) {
    add_labels(*segment, offset, supervision);
    add_slots(*segment, offset, supervision);
    offset += segment->encoded_len();
  }
  return supervision;
}

}  // namespace rematch
