#pragma once
#include <string>

namespace rematch {

/// Matching of predictions with the truth (BEHAVIOUR 6); names are the keys under
/// `custom.extra.rollout_matching`.
struct MatchSettings {
  /// `match_policy`: a name in match_policies(); the costs, gate and candidates are that one's
  std::string policy = "maskiou";
  /// ≥ 1; ground truths compared by mask with each prediction
  int candidate_top_k = 10;
  double maskiou_gate = 0.3;     ///< 0..1; below it a candidate is rejected
  int maskiou_resolution = 256;  ///< ≥ 1; side of the canvas in pixels
  double fp_cost = 1.0;          ///< ≥ 0; of an unmatched prediction
  double fn_cost = 1.0;          ///< ≥ 0; of an unmatched ground truth
  /// "exact", "normalized" or a file of synonyms: equal labels in scores (LabelMatch)
  std::string label_match = "normalized";

  bool operator==(const MatchSettings&) const = default;
};

}  // namespace rematch
