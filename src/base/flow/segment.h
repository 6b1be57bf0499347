#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/flow/sample.h"
#include "base/flow/token.h"

namespace rematch {

/// The piece of a segment that a slot belongs to.
enum class SlotSource { kPrefix, kAppend };

/// A supervised token with a target other than the token itself: the logits of `position - 1` are
/// compared with `target`.
struct Slot {
  int position = 0;  ///< in the segment's token_ids, ≥ 1
  int target = 0;    ///< ≥ 0; the kind says what it means
  SlotSource source = SlotSource::kAppend;

  bool operator==(const Slot&) const = default;

  friend void fields(auto& wire, Slot& slot) { wire(slot.position, slot.target, slot.source); }
};

/// The kind of slots on coord tokens; their target is a bin 0..999.
inline constexpr const char* kCoordSlots = "coord";

/// One sample's teacher-forced sequence: prompt + kept prefix + append + <|im_end|>. Atomic: never
/// split, never truncated.
struct Segment {
  int64_t sample_id = 0;
  std::vector<TokenId> token_ids;
  /// same length; the token itself where cross-entropy applies, else kIgnoreLabel
  std::vector<int> labels;
  /// by kind (kCoordSlots, or a name that another loss term reads); each list is sorted by position
  std::map<std::string, std::vector<Slot>> slots;
  std::vector<ImageRef> images;  ///< references, not pixels
  int prompt_len = 0;            ///< tokens
  int prefix_len = 0;
  int append_len = 0;  ///< without <|im_end|>
  std::string where;   ///< "path:line" of the sample

  int encoded_len() const { return static_cast<int>(token_ids.size()); }

  /// Adds a slot to its kind, which stays sorted by position.
  void add_slot(const std::string& kind, const Slot& slot) {
    std::vector<Slot>& list = slots[kind];
    list.insert(std::ranges::upper_bound(list, slot.position, {}, &Slot::position), slot);
  }
  /// Slots of a kind, by position; empty when the segment has none.
  const std::vector<Slot>& slots_of(const std::string& kind) const {
    static const std::vector<Slot> kNone;
    const auto found = slots.find(kind);
    return found == slots.end() ? kNone : found->second;
  }

  friend void fields(auto& wire, Segment& segment) {
    wire(segment.sample_id, segment.token_ids, segment.labels, segment.slots, segment.images,
         segment.prompt_len, segment.prefix_len, segment.append_len, segment.where);
  }
};

/// A segment that nothing changes any more: ranks of rows, the carry buffer and a reused window
/// share it.
using SegmentPtr = std::shared_ptr<const Segment>;
using Segments = std::vector<SegmentPtr>;
/// Segments of a window, one list for each micro-batch, in sample order.
using WindowSegments = std::vector<Segments>;

/// One teacher-forced forward: segments side by side, never attending to each other.
struct PackedRow {
  Segments segments;

  int total_len() const {
    int total = 0;
    for (const auto& segment : segments) total += segment->encoded_len();
    return total;
  }

  friend void fields(auto& wire, PackedRow& row) { wire(row.segments); }
};

/// The rows behind one optimizer step (or several, when the rollout buffer reuses them). Passed as
/// const, because a window may be reused.
struct Window {
  int64_t window_idx = 0;
  int64_t epoch = 0;
  std::vector<PackedRow> rows;
  /// fewer micro-batches than gradient_accumulation_steps (end of an epoch)
  bool is_partial = false;

  friend void fields(auto& wire, Window& window) {
    wire(window.window_idx, window.epoch, window.rows, window.is_partial);
  }
};

/// The current window: made by one E-step, trained on for one or more optimizer steps, never
/// changed in between.
struct OpenWindow {
  Window window;
  bool last_of_epoch = false;
  int64_t step0 = 0;            ///< optimizer steps before it was made
  int64_t completed_steps = 0;  ///< optimizer steps done on it

  friend void fields(auto& wire, OpenWindow& open) {
    wire(open.window, open.last_of_epoch, open.step0, open.completed_steps);
  }
};

}  // namespace rematch
