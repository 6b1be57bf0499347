#pragma once
#include <string>

namespace rematch {

/// How predictions are judged (BEHAVIOUR 6); names are the keys under `custom.extra.rollout_matching`.
struct MatchSettings {
  std::string policy = "maskiou";          ///< `match_policy`: a name in match_policies(); the costs, gate and candidates are that one's
  int candidate_top_k = 10;                ///< ≥ 1; ground truths compared by mask with each prediction
  double maskiou_gate = 0.3;               ///< 0..1; below it a candidate is rejected
  int maskiou_resolution = 256;            ///< ≥ 1; side of the canvas in pixels
  double fp_cost = 1.0;                    ///< ≥ 0; of an unmatched prediction
  double fn_cost = 1.0;                    ///< ≥ 0; of an unmatched ground truth
  std::string label_match = "normalized";  ///< "exact", "normalized" or a file of synonyms: equal labels in scores (LabelMatch)

  bool operator==(const MatchSettings&) const = default;
};

}  // namespace rematch
