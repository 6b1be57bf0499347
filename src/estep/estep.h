#pragma once
#include <cstdint>
#include <memory>

#include "estep/examiner.h"
#include "estep/segment_source.h"
#include "estep/target/target_builder.h"

namespace rematch {

/// Stage 2: rollout → parse → match → target for all samples of a window together (BEHAVIOUR 4–7).
class EStep : public SegmentSource {
 public:
  struct Options {
    TargetOptions target;
    int global_max_length = 0;  ///< cap of a segment in tokens; 0 = none
  };
  /// All parts outlive the E-step.
  EStep(Examiner& examiner, RolloutEngine& engine, const AnswerVocab& vocab, Options options);

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

 private:
  std::shared_ptr<const Segment> segment_of(const Examined& one, MetricsBag& metrics) const;

  Examiner& examiner_;
  RolloutEngine& engine_;
  const AnswerVocab& vocab_;
  Options options_;
};

/// Stage 1: the full ground-truth answer of every sample (BEHAVIOUR 14).
class TeacherSource : public SegmentSource {
 public:
  /// All parts outlive the source. @param global_max_length  cap of a segment in tokens; 0 = none
  TeacherSource(const Dataset& dataset, const PromptEncoder& prompts, const AnswerVocab& vocab, PixelStore& pixels, Examiner::Options options,
                int global_max_length);

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

  /// The segment of one sample. @param sample_idx  into dataset.samples()
  std::shared_ptr<const Segment> segment_at(int64_t sample_idx, int64_t epoch) const;

 private:
  const Dataset& dataset_;
  const PromptEncoder& prompts_;
  const AnswerVocab& vocab_;
  PixelStore& pixels_;
  Examiner::Options options_;
  int global_max_length_;
};

}  // namespace rematch
