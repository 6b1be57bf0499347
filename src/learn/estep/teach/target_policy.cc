#include "learn/estep/teach/target_policy.h"

namespace rematch {

Choices<TargetPolicyRow>& target_policies() {
  static Choices<TargetPolicyRow> table(
      "target policy", "target_policy", "",
      {{"append",
        "the rollout is kept, missing objects are appended, matched coordinates corrected",
        append_target},
       {"rewrite",
        "the full ground-truth answer; matched predictions provide the coordinates shown as inputs",
        rewrite_target}});
  return table;
}

SegmentResult build_segment(const TargetInput& input, const AnswerFormat& format,
                            const TargetSettings& options) {
  check_target_options(options);
  return target_policies().find(options.policy).build(input, format, options);
}

std::vector<int> missing_indices(const std::vector<std::pair<int, int>>& pairs,
                                 size_t num_ground_truth) {
  std::vector<bool> present(num_ground_truth, false);
  for (const auto& pair : pairs) present[pair.second] = true;
  std::vector<int> missing;
  for (size_t i = 0; i < num_ground_truth; ++i) {
    if (!present[i]) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

}  // namespace rematch
