#include "learn/estep/truth_segments.h"

#include <utility>

#include "base/error.h"
#include "learn/augment/augmentation.h"
#include "learn/estep/teach/segment_checks.h"

namespace rematch {

TruthSegments::TruthSegments(const Dataset& dataset, const PromptEncoder& prompts,
                             const AnswerFormat& format, PixelStore& pixels,
                             RolloutScorer::Options options, Caps caps, InputNoise noise)
    : dataset_(dataset),
      prompts_(prompts),
      format_(format),
      pixels_(pixels),
      options_(std::move(options)),
      caps_(caps),
      noise_(noise) {}

WindowSegments TruthSegments::build(const WindowPlan& plan) const {
  WindowSegments segments;
  std::vector<ImageRef> images;
  for (const auto& micro_batch : plan.micro_batches) {
    segments.emplace_back();
    int64_t num_tokens = 0;
    for (const int64_t sample_idx : micro_batch) {
      segments.back().push_back(segment_at(sample_idx, plan.epoch));
      num_tokens += segments.back().back()->encoded_len();
      images.insert(images.end(), segments.back().back()->images.begin(),
                    segments.back().back()->images.end());
    }
    // The stream was packed with the same lengths.
    REMATCH_CHECK(caps_.row_tokens <= 0 || num_tokens <= caps_.row_tokens);
  }
  pixels_.prefetch(images);
  return segments;
}

SegmentPtr TruthSegments::segment_at(int64_t sample_idx, int64_t epoch) const {
  const Sample sample =
      augment_sample(dataset_.samples()[sample_idx], options_.augment, options_.seed, epoch);
  const Prompt prompt = make_prompt(sample, epoch, &prompts_, options_.patches);
  Segment segment = build_ground_truth_segment(
      prompt, order_objects(sample, options_.ordering, options_.seed, epoch), format_, noise_);
  check_encoded_len(segment, caps_.segment_tokens);
  return std::make_shared<const Segment>(std::move(segment));
}

int TruthSegments::encoded_len(int64_t sample_idx, int64_t epoch) const {
  return segment_at(sample_idx, epoch)->encoded_len();
}

}  // namespace rematch
