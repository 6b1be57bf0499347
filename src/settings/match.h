#pragma once

namespace rematch {

/// How predictions are judged (BEHAVIOUR 6); names are the keys under `custom.extra.rollout_matching`.
struct MatchSettings {
  int candidate_top_k = 10;      ///< ≥ 1; ground truths compared by mask with each prediction
  double maskiou_gate = 0.3;     ///< 0..1; below it a candidate is rejected
  int maskiou_resolution = 256;  ///< ≥ 1; side of the canvas in pixels
  double fp_cost = 1.0;          ///< ≥ 0; of leaving a prediction alone
  double fn_cost = 1.0;          ///< ≥ 0; of leaving a ground truth alone

  bool operator==(const MatchSettings&) const = default;
};

}  // namespace rematch
