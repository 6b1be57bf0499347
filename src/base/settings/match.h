#pragma once
#include <string>

namespace rematch {

/// Matching of predictions with ground truths (BEHAVIOUR 6); the names are the keys under
/// `custom.extra.rollout_matching`.
struct MatchSettings {
  /// `match_policy`: a name in match_policies(), which uses the costs, gate and candidates
  std::string policy = "maskiou";
  /// ≥ 1; most candidate ground truths per prediction
  int candidate_top_k = 10;
  double maskiou_gate = 0.3;     ///< 0..1; lowest maskIoU of a candidate
  int maskiou_resolution = 256;  ///< ≥ 1; side of the canvas in pixels
  double fp_cost = 1.0;          ///< ≥ 0; cost of an unmatched prediction
  double fn_cost = 1.0;          ///< ≥ 0; cost of an unmatched ground truth
  /// comparison of labels in scores: "exact", "normalized" or a file of synonyms (LabelMatch)
  std::string label_match = "normalized";

  bool operator==(const MatchSettings&) const = default;
};

}  // namespace rematch
