#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "learn/resume/run_state.h"

namespace rematch::test {

inline constexpr int64_t kVocabSize = 500;

/// A segment as the pipeline makes them, different for every `number`.
inline std::shared_ptr<const Segment> some_segment(int number) {
  auto segment = std::make_shared<Segment>();
  segment->sample_id = number;
  segment->prompt_len = 4 + number % 3;
  segment->prefix_len = number % 4;
  segment->append_len = 3;
  const int length = segment->prompt_len + segment->prefix_len + segment->append_len + 1;
  for (int i = 0; i < length; ++i) {
    const int id = (number * 31 + i * 7) % static_cast<int>(kVocabSize);
    const bool is_slot = i == length - 2,
               is_label = i >= segment->prompt_len && i % 2 == 0 && !is_slot;
    segment->token_ids.push_back(id);
    segment->labels.push_back(is_label ? id : kIgnoreLabel);
    if (is_slot) {
      segment->add_slot(kCoordSlots,
                        {.position = i,
                         .target = (number * 97) % kNumBins,
                         .source = number % 2 == 0 ? SlotSource::kPrefix : SlotSource::kAppend});
    }
  }
  for (int i = 0; i < number % 3; ++i) {
    segment->images.push_back(
        {.path = "images/" + std::to_string(number) + "-" + std::to_string(i) + ".jpg",
         .grid_thw = {1, 2 + i, 4}});
    if (i == 1)
      segment->images.back().change = {
          .crop_px = {3, 0, 40, 30}, .orientation = 1, .color = {900, 1100, 1000}};
  }
  segment->where = "train.jsonl:" + std::to_string(number + 1);
  return segment;
}

/// A run in the middle of a buffered window with a full carry buffer.
inline RunState busy_run() {
  RunState run;
  run.num_steps = 11;
  run.cursor = {.epoch = 1, .next_window_in_epoch = 2, .window_idx = 7};
  run.open =
      OpenWindow{.window = {.window_idx = 6,
                            .epoch = 1,
                            .rows = {{{some_segment(0), some_segment(1)}}, {{some_segment(2)}}},
                            .is_partial = false},
                 .last_of_epoch = false,
                 .step0 = 9,
                 .completed_steps = 2};
  for (int i = 3; i < 7; ++i) run.waiting.push_back(some_segment(i));
  run.packing = {.num_rows = 12,
                 .num_segments = 40,
                 .num_tokens = 5000,
                 .padded_tokens = 6000,
                 .num_underfilled = 1};
  run.evaluation_pending = true;
  run.fingerprint = {.fixed = {{"training.seed", "42"}, {"WORLD_SIZE", "1"}},
                     .settings = {{"training.learning_rate", "1e-5"}, {"name", "\xff\xfe"}}};
  return run;
}

inline bool same_segment(const Segment& a, const Segment& b) {
  return a.sample_id == b.sample_id && a.token_ids == b.token_ids && a.labels == b.labels &&
         a.slots == b.slots && a.images == b.images && a.prompt_len == b.prompt_len &&
         a.prefix_len == b.prefix_len && a.append_len == b.append_len && a.where == b.where;
}

inline bool same_segments(const std::vector<std::shared_ptr<const Segment>>& a,
                          const std::vector<std::shared_ptr<const Segment>>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_segment(*a[i], *b[i])) return false;
  }
  return true;
}

}  // namespace rematch::test
