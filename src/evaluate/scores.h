#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "estep/examiner.h"

namespace rematch {

/// Counts over examined samples, from which precision, recall and the rest follow (BEHAVIOUR 15).
struct Scores {
  int64_t num_samples = 0;
  int64_t pred_objects = 0;
  int64_t gt_objects = 0;
  int64_t matched = 0;
  int64_t gating_rejections = 0;
  int64_t parse_dropped_invalid = 0;
  int64_t num_truncated = 0;
  int64_t num_malformed = 0;
  int64_t num_with_valid_pred = 0;
  int64_t num_with_match = 0;
  double matched_maskiou_sum = 0;

  /// Adds one sample with the matching given (its own, or one at another gate).
  void add(const Examined& examined, const Matching& matching);

  /// All three are 0 when undefined.
  double precision() const;
  double recall() const;
  double f1() const;
  double matched_maskiou_mean() const;

  /// `eval_rollout_*` in the order of BEHAVIOUR 15.
  std::vector<std::pair<std::string, double>> metrics() const;
};

/// The sample's matching at another IoU gate; everything else of `options` stays.
Matching match_at_gate(const Examined& examined, MatchSettings options, double maskiou_gate);

}  // namespace rematch
