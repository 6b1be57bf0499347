#include "estep/estep.h"

#include <cmath>

#include "estep/target/segment_checks.h"

namespace rematch {

EStep::EStep(Examiner& examiner, RolloutEngine& engine, const AnswerVocab& vocab, Options options)
    : examiner_(examiner), engine_(engine), vocab_(vocab), options_(std::move(options)) {}

WindowSegments EStep::build(const WindowPlan& plan, MetricsBag& metrics) {
  // One E-step for the whole window, with the weights of this step; generate calls may span its
  // micro-batches.
  metrics.add("rollout/is_rollout", 1);
  std::vector<int64_t> samples;
  for (const auto& micro_batch : plan.micro_batches)
    samples.insert(samples.end(), micro_batch.begin(), micro_batch.end());
  examiner_.prefetch(samples);
  const std::vector<Examined> examined = examine(samples, plan, metrics);
  if (options_.on_examined) options_.on_examined(examined);

  Span encode_time(metrics, "time/rollout_teacher_encode_s");
  WindowSegments segments;
  size_t next = 0;
  for (const auto& micro_batch : plan.micro_batches) {
    segments.emplace_back();
    for (size_t i = 0; i < micro_batch.size(); ++i)
      segments.back().push_back(segment_of(examined[next++], metrics));
  }
  return segments;
}

std::vector<Examined> EStep::examine(const std::vector<int64_t>& samples, const WindowPlan& plan,
                                     MetricsBag& metrics) {
  GenerationScope scope(engine_, options_.offload, plan.window_idx);
  std::vector<Examined> examined = examiner_.examine(samples, plan.epoch, metrics);
  scope.finish();
  return examined;
}

std::shared_ptr<const Segment> EStep::segment_of(const Examined& one, MetricsBag& metrics) const {
  SegmentResult result = target_of(one, vocab_, options_.target);
  check_encoded_len(result.segment, options_.global_max_length);
  metrics.add("rollout/matched_for_supervision", result.num_supervised_pairs);
  metrics.add("rollout/excluded_from_supervision", result.num_excluded);
  metrics.add("rollout/fn_appended", static_cast<double>(result.false_negatives.size()));
  metrics.add("rollout/prefix_len", result.segment.prefix_len);
  metrics.add("rollout/append_len", result.segment.append_len);
  metrics.add("rollout/encoded_len", result.segment.encoded_len());
  return std::make_shared<const Segment>(std::move(result.segment));
}

SegmentResult target_of(const Examined& one, const AnswerVocab& vocab,
                        const TargetSettings& target) {
  return build_segment({one.prompt, one.parsed, one.matching, one.ground_truth}, vocab, target);
}

bool rolls_out(int64_t window_idx, double share) {
  return std::floor(static_cast<double>(window_idx + 1) * share) >
         std::floor(static_cast<double>(window_idx) * share);
}

WindowSegments SharedSource::build(const WindowPlan& plan, MetricsBag& metrics) {
  if (rolls_out(plan.window_idx, share_)) return rollouts_->build(plan, metrics);
  metrics.add("rollout/is_rollout", 0);
  return truth_->build(plan, metrics);
}

}  // namespace rematch
