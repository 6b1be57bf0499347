#include "evaluate/scores.h"

namespace rematch {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

}  // namespace

void Scores::add(const Examined& examined, const Matching& matching) {
  ++num_samples;
  pred_objects += static_cast<int64_t>(examined.parsed.objects.size());
  gt_objects += static_cast<int64_t>(examined.ground_truth.size());
  matched += static_cast<int64_t>(matching.pairs.size());
  gating_rejections += matching.gating_rejections;
  parse_dropped_invalid += examined.parsed.dropped_invalid;
  num_truncated += examined.parsed.status == ParseStatus::kTruncated;
  num_malformed += examined.parsed.status == ParseStatus::kMalformed;
  num_with_valid_pred += !examined.parsed.objects.empty();
  num_with_match += !matching.pairs.empty();
  matched_maskiou_sum += matching.matched_maskiou_sum;
}

double Scores::precision() const { return ratio(static_cast<double>(matched), static_cast<double>(pred_objects)); }
double Scores::recall() const { return ratio(static_cast<double>(matched), static_cast<double>(gt_objects)); }
double Scores::f1() const { return ratio(2.0 * static_cast<double>(matched), static_cast<double>(pred_objects + gt_objects)); }
double Scores::matched_maskiou_mean() const { return ratio(matched_maskiou_sum, static_cast<double>(matched)); }

std::vector<std::pair<std::string, double>> Scores::metrics() const {
  const auto samples = static_cast<double>(num_samples);
  return {
      {"eval_rollout_precision", precision()},
      {"eval_rollout_recall", recall()},
      {"eval_rollout_f1", f1()},
      {"eval_rollout_pred_objects", static_cast<double>(pred_objects)},
      {"eval_rollout_gt_objects", static_cast<double>(gt_objects)},
      {"eval_rollout_matched", static_cast<double>(matched)},
      {"eval_rollout_fp", static_cast<double>(pred_objects - matched)},
      {"eval_rollout_fn", static_cast<double>(gt_objects - matched)},
      {"eval_rollout_gating_rejections", static_cast<double>(gating_rejections)},
      {"eval_rollout_parse_dropped_invalid", static_cast<double>(parse_dropped_invalid)},
      {"eval_rollout_parse_truncated_rate", ratio(static_cast<double>(num_truncated), samples)},
      {"eval_rollout_parse_malformed_rate", ratio(static_cast<double>(num_malformed), samples)},
      {"eval_rollout_sample_valid_pred_rate", ratio(static_cast<double>(num_with_valid_pred), samples)},
      {"eval_rollout_sample_any_match_rate", ratio(static_cast<double>(num_with_match), samples)},
      {"eval_rollout_matched_maskiou_mean", matched_maskiou_mean()},
  };
}

Matching match_at_gate(const Examined& examined, MatchSettings options, double maskiou_gate) {
  options.maskiou_gate = maskiou_gate;
  return match(geometries_of(examined.parsed.objects), geometries_of(examined.ground_truth), options);
}

}  // namespace rematch
