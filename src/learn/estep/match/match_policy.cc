#include "learn/estep/match/match_policy.h"

namespace rematch {
namespace {

Matching match_by_maskiou(const Objects& predictions, const Objects& ground_truth,
                          const MatchSettings& options) {
  return match(get_geometries(predictions), get_geometries(ground_truth), options);
}

}  // namespace

Choices<MatchPolicyRow>& match_policies() {
  static Choices<MatchPolicyRow> table(
      "match policy", "match_policy", "",
      {{"maskiou", "maskIoU with a gate, then the assignment of least cost", match_by_maskiou}});
  return table;
}

Matching match_objects(const Objects& predictions, const Objects& ground_truth,
                       const MatchSettings& options) {
  return match_policies().find(options.policy).match(predictions, ground_truth, options);
}

}  // namespace rematch
