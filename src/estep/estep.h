#pragma once
#include "estep/examiner.h"
#include "estep/segment_source.h"
#include "estep/target/target_builder.h"

namespace rematch {

/// Stage 2: rollout → parse → match → target for all samples of a window together (BEHAVIOUR 4–7).
class EStep : public SegmentSource {
 public:
  struct Options {
    TargetOptions target;
    int64_t global_max_length = 0;  ///< cap of a segment in tokens; 0 = none
  };
  EStep(Examiner& examiner, RolloutEngine& engine, const Tokenizer& tokenizer, const CoordVocab& coords, Options options);

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

 private:
  Examiner& examiner_;
  RolloutEngine& engine_;
  const Tokenizer& tokenizer_;
  const CoordVocab& coords_;
  Options options_;
};

/// Stage 1: the full ground-truth answer of every sample (BEHAVIOUR 14).
class TeacherSource : public SegmentSource {
 public:
  TeacherSource(const Dataset& dataset, const PromptEncoder& prompts, const Tokenizer& tokenizer, const CoordVocab& coords, PixelStore& pixels,
                Examiner::Options options, int64_t global_max_length);

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

  /// The segment of one sample. @param sample_idx  into dataset.samples()
  std::shared_ptr<const Segment> segment_at(int64_t sample_idx, int64_t epoch) const;

 private:
  const Dataset& dataset_;
  const PromptEncoder& prompts_;
  const Tokenizer& tokenizer_;
  const CoordVocab& coords_;
  PixelStore& pixels_;
  Examiner::Options options_;
  int64_t global_max_length_;
};

}  // namespace rematch
