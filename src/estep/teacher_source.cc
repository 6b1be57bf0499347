#include <utility>

#include "estep/estep.h"
#include "estep/target/segment_checks.h"

namespace rematch {

TeacherSource::TeacherSource(const Dataset& dataset, const PromptEncoder& prompts, const AnswerVocab& vocab, PixelStore& pixels,
                             Examiner::Options options, int global_max_length)
    : dataset_(dataset), prompts_(prompts), vocab_(vocab), pixels_(pixels), options_(std::move(options)), global_max_length_(global_max_length) {}

WindowSegments TeacherSource::build(const WindowPlan& plan, MetricsBag&) {
  WindowSegments segments;
  for (const auto& micro_batch : plan.micro_batches) {
    segments.emplace_back();
    for (const int64_t sample_idx : micro_batch) {
      segments.back().push_back(segment_at(sample_idx, plan.epoch));
      pixels_.prefetch(segments.back().back()->images);
    }
  }
  return segments;
}

std::shared_ptr<const Segment> TeacherSource::segment_at(int64_t sample_idx, int64_t epoch) const {
  const Sample& sample = dataset_.samples()[static_cast<size_t>(sample_idx)];
  const Prompt prompt = make_prompt(sample, epoch, prompts_, options_.patches);
  Segment segment = build_ground_truth_segment(prompt, order_objects(sample, options_.ordering, options_.seed, epoch), vocab_);
  check_encoded_len(segment, global_max_length_);
  return std::make_shared<const Segment>(std::move(segment));
}

}  // namespace rematch
