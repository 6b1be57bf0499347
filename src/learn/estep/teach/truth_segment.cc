#include "learn/estep/teach/truth_segment.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "learn/estep/teach/segment_builder.h"

namespace rematch {
namespace {

// Keeps this stream apart from the others that are keyed by the same seed, epoch and sample.
constexpr uint64_t kNoiseStream = 0x6E6F697365ULL;

void add_noise(std::vector<AnswerEntry>& entries, const Prompt& prompt, const InputNoise& noise) {
  const uint64_t key = random_key(kNoiseStream, noise.seed, prompt.epoch, prompt.sample_id);
  uint64_t slot = 0;
  for (AnswerEntry& entry : entries) {
    for (int& bin : entry.shown.geometry.bins) {
      const double moved = std::nearbyint(bin + noise.sigma_bins * random_normal(key, slot++));
      bin = static_cast<int>(std::clamp(moved, 0.0, static_cast<double>(kNumBins - 1)));
    }
  }
}

}  // namespace

Segment answer_segment(const Prompt& prompt, const std::vector<AnswerEntry>& entries,
                       const AnswerFormat& format, std::string* text) {
  TaughtAnswer answer = format.teach(entries, prompt);
  if (text != nullptr) *text = std::move(answer.text);
  return SegmentBuilder(prompt).finish(answer.tokens, format.im_end_id());
}

Segment build_ground_truth_segment(const Prompt& prompt, const Objects& objects,
                                   const AnswerFormat& format, const InputNoise& noise) {
  std::vector<AnswerEntry> entries;
  for (const SceneObject& object : objects)
    entries.push_back({.shown = object, .taught_bins = object.geometry.bins});
  if (noise.sigma_bins > 0) add_noise(entries, prompt, noise);
  return answer_segment(prompt, entries, format);
}

}  // namespace rematch
