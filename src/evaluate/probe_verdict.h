#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// Sums over the images whose number of objects lies in a range.
struct ProbeBucket {
  int min_objects = 0, max_objects = 0;  ///< ends included
  int64_t num_images = 0;
  int64_t num_truths = 0;
  int64_t num_predictions = 0;
  int64_t num_missing = 0;   ///< truths that the greedy answer does not have
  int64_t num_found = 0;     ///< of those, truths that at least one sampled answer has
  int64_t num_repeated = 0;  ///< predictions that repeat an earlier one
};

/// What `rematch probe` measures of a checkpoint. Pairs are those of `maskiou_gate` unless a name
/// says otherwise.
struct ProbeNumbers {
  /// by objects of an image, ascending, ranges without images left out
  std::vector<ProbeBucket> by_count;
  int64_t num_truncated = 0;  ///< greedy answers
  int64_t num_malformed = 0;
  int64_t num_matched = 0;
  int64_t num_matched_50 = 0;  ///< pairs when only those of maskIoU ≥ 0.5 count
  int64_t num_named_right = 0;
  double matched_iou_sum = 0;
  int64_t num_neighbours = 0;  ///< matched objects that follow one another in an answer
  int64_t num_in_order = 0;    ///< of those, in the sorted order of the truth too
  int num_draws = 0;           ///< sampled answers for each image that misses something

  ProbeBucket total() const;  ///< over all images

  // Shares; 0 where there is nothing to divide by.
  double f1_50() const;
  double label_accuracy() const;
  double matched_iou() const;
  double duplicates() const;
  double pred_per_gt() const;
  double truncated() const;
  double malformed() const;
  double missing() const;  ///< of the truths
  double found() const;    ///< of the missing truths
  /// 1: answers follow the sorted order; 0.5: a random one; none without two matches in an answer
  std::optional<double> order_agreement() const;
};

/// What to do with a checkpoint.
enum class ProbeAction {
  kSort,     ///< sort the answers and go on with stage 1
  kStage1,   ///< go on with stage 1
  kNoise,    ///< stage 1 with noise on its coordinate inputs
  kRewrite,  ///< stage 2 with target_policy: rewrite
  kStop,     ///< nothing measurable is left to gain
};
/// "sort", "stage_1", "noise", "rewrite", "stop".
const char* name_of(ProbeAction action);

/// A judgement in words.
struct ProbeVerdict {
  ProbeAction action = ProbeAction::kStop;
  std::string headline;              ///< one line: what to do
  std::vector<std::string> reasons;  ///< the numbers that decided
  std::vector<std::string> steps;    ///< what to set, in order
};

/// Judges by the thresholds of docs/probe.md, the gravest finding first: broken answers, order,
/// boxes, labels; then whether anything is left to gain, and whether the model's own samples hold
/// it. Depends on its arguments only.
/// @param sorted  `custom.object_ordering: sorted`
ProbeVerdict judge(const ProbeNumbers& numbers, bool sorted);

}  // namespace rematch
