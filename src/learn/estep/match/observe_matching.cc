#include "learn/estep/match/observe_matching.h"

#include <algorithm>
#include <utility>

#include "learn/estep/match/repeats.h"

namespace rematch {

void observe_matching(const Objects& predictions, const Objects& ground_truth,
                      const Matching& matching, const MatchSettings& options,
                      const LabelMatch& labels, MetricsBag& metrics) {
  const double num_pred = predictions.size();
  const double num_gt = ground_truth.size();
  const double num_matched = matching.pairs.size();
  metrics.add("rollout/gt_objects", num_gt);
  metrics.add("rollout/valid_pred_objects", num_pred);
  metrics.add("rollout/matched", num_matched);
  const auto is_named_right = [&](const std::pair<int, int>& pair) {
    return labels.same(predictions[pair.first].desc, ground_truth[pair.second].desc);
  };
  const auto num_named_right = std::ranges::count_if(matching.pairs, is_named_right);
  metrics.add("rollout/matched_labels", num_named_right);
  const auto repeated = repeated_objects(predictions, kRepeatIou, options.maskiou_resolution);
  metrics.add("rollout/repeated_objects", repeated.size());
  metrics.add("rollout/fp", num_pred - num_matched);
  metrics.add("rollout/fn", num_gt - num_matched);
  metrics.add("rollout/gating_rejections", matching.gating_rejections);
  metrics.add("rollout/candidate_pairs",
              num_pred * std::min<double>(options.candidate_top_k, num_gt));
  metrics.add("rollout/matched_maskiou_sum", matching.matched_maskiou_sum);
  metrics.add("rollout/sample_valid_pred", num_pred > 0);
  metrics.add("rollout/sample_any_match", num_matched > 0);
}

void observe_status(ParseStatus status, MetricsBag& metrics) {
  metrics.add("rollout/parse_truncated", status == ParseStatus::kTruncated);
  metrics.add("rollout/parse_malformed", status == ParseStatus::kMalformed);
}

}  // namespace rematch
