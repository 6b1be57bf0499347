#include "learn/estep/make_target.h"

#include <utility>

#include "learn/estep/teach/segment_checks.h"

namespace rematch {

SegmentResult build_target(const ScoredRollout& rollout, const AnswerFormat& format,
                           const TargetSettings& target) {
  return build_segment({rollout.prompt, rollout.parsed, rollout.matching, rollout.ground_truth},
                       format, target);
}

SegmentPtr make_target(const ScoredRollout& rollout, const TargetOptions& options,
                       MetricsBag& metrics) {
  const Span time(metrics, "time/rollout_teacher_encode_s");
  SegmentResult result = build_target(rollout, options.format, options.target);
  check_encoded_len(result.segment, options.max_length);
  metrics.add("rollout/matched_for_supervision", result.num_supervised_pairs);
  metrics.add("rollout/excluded_from_supervision", result.num_excluded);
  metrics.add("rollout/fn_appended", result.false_negatives.size());
  metrics.add("rollout/prefix_len", result.segment.prefix_len);
  metrics.add("rollout/append_len", result.segment.append_len);
  metrics.add("rollout/encoded_len", result.segment.encoded_len());
  return std::make_shared<const Segment>(std::move(result.segment));
}

}  // namespace rematch
