#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "estep/examiner.h"
#include "rollout/generation_scope.h"
#include "estep/segment_source.h"
#include "estep/target/target_policy.h"
#include "estep/target/truth_segment.h"

namespace rematch {

/// Stage 2: rollout → parse → match → target for all samples of a window together (BEHAVIOUR 4–7).
class EStep : public SegmentSource {
 public:
  struct Options {
    TargetSettings target;
    int global_max_length = 0;  ///< cap of a segment in tokens; 0 = none
    /// makes room for the engine; used only when the engine holds its own weights
    Offload* offload = nullptr;
    /// told of every window's samples; may be empty
    std::function<void(const std::vector<Examined>&)> on_examined;
  };
  /// All parts outlive the E-step.
  EStep(Examiner& examiner, RolloutEngine& engine, const AnswerVocab& vocab, Options options);

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

 private:
  /// The part that needs the engine: sync, rollouts, examination.
  std::vector<Examined> examine(const std::vector<int64_t>& samples, const WindowPlan& plan,
                                MetricsBag& metrics);
  std::shared_ptr<const Segment> segment_of(const Examined& one, MetricsBag& metrics) const;

  Examiner& examiner_;
  RolloutEngine& engine_;
  const AnswerVocab& vocab_;
  Options options_;
};

/// Segment of an examined sample by the target policy.
SegmentResult target_of(const Examined& one, const AnswerVocab& vocab,
                        const TargetSettings& target);

/// Stage 1: the full ground-truth answer of every sample (BEHAVIOUR 14).
class TeacherSource : public SegmentSource {
 public:
  /// Most tokens; 0 = no cap.
  struct Caps {
    int segment_tokens = 0;  ///< of a segment (`global_max_length`)
    int row_tokens = 0;      ///< of a micro-batch, when the stream is packed into rows
  };
  /// All parts outlive the source.
  TeacherSource(const Dataset& dataset, const PromptEncoder& prompts, const AnswerVocab& vocab,
                PixelStore& pixels, Examiner::Options options, Caps caps, InputNoise noise = {});

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

  /// The segment of one sample. @param sample_idx  into dataset.samples()
  /// @throws UserError (data) when it is longer than caps.segment_tokens
  std::shared_ptr<const Segment> segment_at(int64_t sample_idx, int64_t epoch) const;

  /// Tokens of segment_at(sample_idx, epoch). Throws as segment_at(). Reads no image. Cost: the
  /// tokenizer on the answer.
  int encoded_len(int64_t sample_idx, int64_t epoch) const;

  /// True when the length of a sample may differ between epochs. Numbers and texts of objects keep
  /// their tokens in any position, but the last object closes the answer: `"]}}` after a bbox_2d
  /// and `"]]}}` after a poly, `"]},` and `"]]},` before another object, and a tokenizer may merge
  /// one pair where it splits the other.
  bool lengths_vary_by_epoch() const { return options_.ordering == ObjectOrdering::kRandom; }

 private:
  const Dataset& dataset_;
  const PromptEncoder& prompts_;
  const AnswerVocab& vocab_;
  PixelStore& pixels_;
  Examiner::Options options_;
  Caps caps_;
  InputNoise noise_;
};

/// True for the windows that roll out when a part of them does. @param share  `rollout_share`, (0,
/// 1]
bool rolls_out(int64_t window_idx, double share);

/// Stage 2 in which `rollout_share` of the windows roll out and the others teach the full truth
/// (BEHAVIOUR 4.8).
class SharedSource : public SegmentSource {
 public:
  SharedSource(std::unique_ptr<SegmentSource> rollouts, std::unique_ptr<SegmentSource> truth,
               double share)
      : rollouts_(std::move(rollouts)), truth_(std::move(truth)), share_(share) {}

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

 private:
  std::unique_ptr<SegmentSource> rollouts_;
  std::unique_ptr<SegmentSource> truth_;
  double share_;
};

}  // namespace rematch
