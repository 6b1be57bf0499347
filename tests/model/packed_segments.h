#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/flow/segment.h"
#include "base/random.h"
#include "model/vision/patches.h"

namespace rematch::test {

// Segments for tests/golden/model/tiny_tied, which reads text, sees images and has 1000 coord
// tokens.
inline constexpr int kImagePad = 366, kVisionStart = 363, kVisionEnd = 364, kFirstCoord = 368,
                     kNumTextTokens = 350;

/// Options of random_segment.
struct SegmentMix {
  int max_images = 3;      ///< 0 = text only
  int max_text = 40;       ///< tokens of each run of text, ≥ 1
  bool supervised = true;  ///< labels on the last run, every third of its tokens a coordinate
};

/// Pixels that depend on the image's path only; grid as in the reference.
inline std::shared_ptr<const Patches> noise_pixels(const ImageRef& image) {
  auto patches = std::make_shared<Patches>();
  patches->grid_thw = image.grid_thw;
  patches->row_width = 3 * 2 * 16 * 16;
  uint64_t key = random_key({17});
  for (const char letter : image.path) key = random_key({key, static_cast<uint64_t>(letter)});
  const auto size = static_cast<uint64_t>(patches->num_rows() * patches->row_width);
  for (uint64_t i = 0; i < size; ++i)
    patches->pixel_values.push_back(static_cast<float>(random_uniform(key, i) * 2 - 1));
  return patches;
}

/// Text, images of two to six patches a side between runs of text, then a run that is taught.
/// Depends on its arguments only.
inline std::shared_ptr<const Segment> random_segment(uint64_t seed, int64_t sample_id,
                                                     const SegmentMix& mix = {}) {
  const uint64_t key = random_key({seed, static_cast<uint64_t>(sample_id)});
  uint64_t drawn = 0;
  const auto below = [&](int bound) {
    return static_cast<int>(random_below(key, drawn++, static_cast<uint64_t>(bound)));
  };
  auto segment = std::make_shared<Segment>();
  segment->sample_id = sample_id;
  const auto add_text = [&] {
    for (int left = 1 + below(mix.max_text); left > 0; --left)
      segment->token_ids.push_back(below(kNumTextTokens));
  };
  const int num_images = below(mix.max_images + 1);
  for (int i = 0; i < num_images; ++i) {
    add_text();
    const int height = 2 + 2 * below(3), width = 2 + 2 * below(3);
    segment->images.push_back({.path = "image" + std::to_string(seed) + "/" +
                                       std::to_string(sample_id) + "/" + std::to_string(i),
                               .grid_thw = {1, height, width}});
    segment->token_ids.push_back(kVisionStart);
    segment->token_ids.insert(segment->token_ids.end(), static_cast<size_t>(height * width / 4),
                              kImagePad);
    segment->token_ids.push_back(kVisionEnd);
  }
  add_text();
  segment->prompt_len = segment->encoded_len();
  segment->labels.assign(segment->token_ids.size(), kIgnoreLabel);
  if (!mix.supervised) return segment;
  for (int i = 0, count = 1 + below(mix.max_text); i < count; ++i) {
    const bool is_slot = i % 3 == 2;
    const int bin = below(1000), token = is_slot ? kFirstCoord + bin : below(kNumTextTokens);
    if (is_slot)
      segment->add_slot(kCoordSlots, {segment->encoded_len(), bin,
                                      i % 2 == 0 ? SlotSource::kPrefix : SlotSource::kAppend});
    segment->token_ids.push_back(token);
    segment->labels.push_back(is_slot ? kIgnoreLabel : token);
  }
  return segment;
}

}  // namespace rematch::test
