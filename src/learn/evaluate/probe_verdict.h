#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "learn/evaluate/answer_counts.h"

namespace rematch {

/// Sums over the images with a number of objects in a range.
struct ProbeBucket {
  int min_objects = 0, max_objects = 0;  ///< both included
  int64_t num_images = 0;
  int64_t num_truths = 0;
  int64_t num_predictions = 0;
  int64_t num_missing = 0;   ///< truths missed by the greedy answer
  int64_t num_found = 0;     ///< of those, truths found by at least one sampled answer
  int64_t num_repeated = 0;  ///< predictions that repeat an earlier one
};

/// Measurements of `rematch probe`. Pairs are counted at `maskiou_gate` unless a name says
/// otherwise.
struct ProbeNumbers {
  /// by number of objects, ascending, without empty ranges
  std::vector<ProbeBucket> by_count;
  AnswerCounts greedy;  ///< answers
  int64_t num_matched = 0;
  int64_t num_matched_50 = 0;  ///< pairs with maskIoU ≥ 0.5
  int64_t num_named_right = 0;
  double matched_iou_sum = 0;
  int64_t num_neighbours = 0;       ///< matched objects that follow one another in an answer
  int64_t num_in_order = 0;         ///< of those, also in the sorted order of the truth
  int64_t num_absent = 0;           ///< names that a prompt lists and its picture lacks
  int64_t num_absent_answered = 0;  ///< of those, with a box
  int num_draws = 0;                ///< sampled answers for each image with a missed object

  ProbeBucket total() const;  ///< over all images

  // Shares; 0 where there is nothing to divide by.
  double f1_50() const {
    return share(2 * num_matched_50, total().num_truths + total().num_predictions);
  }
  double label_accuracy() const { return share(num_named_right, num_matched); }
  double matched_iou() const { return share(matched_iou_sum, num_matched); }
  double duplicates() const { return share(total().num_repeated, total().num_predictions); }
  double pred_per_gt() const { return share(total().num_predictions, total().num_truths); }
  double truncated() const { return share(greedy.truncated, total().num_images); }
  double malformed() const { return share(greedy.malformed, total().num_images); }
  double absent_answered() const { return share(num_absent_answered, num_absent); }
  /// of the truths
  double missing() const { return share(total().num_missing, total().num_truths); }
  /// of the missing truths
  double found() const { return share(total().num_found, total().num_missing); }
  /// 1: answers follow the sorted order; 0.5: a random one; none without two matches in an answer
  std::optional<double> order_agreement() const {
    return num_neighbours == 0 ? std::nullopt : std::optional(share(num_in_order, num_neighbours));
  }

 private:
  template <class Part>
  static double share(Part part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / whole : 0.0;
  }
};

/// Recommended next action for a checkpoint.
enum class ProbeAction {
  kSort,     ///< give the truth another order and continue stage 1
  kStage1,   ///< continue stage 1
  kNoise,    ///< stage 1 with noise on its coordinate inputs
  kRewrite,  ///< stage 2 with target_policy: rewrite
  kStop,     ///< nothing measurable is left to gain
};
/// "sort", "stage_1", "noise", "rewrite", "stop".
const char* name_of(ProbeAction action);

struct ProbeVerdict {
  ProbeAction action = ProbeAction::kStop;
  std::string headline;  ///< one sentence: what to do
};

/// Applies the thresholds of docs/probe.md. The most serious finding wins: broken answers, order,
/// boxes, labels; then what is left to gain, and if the model's own samples contain it.
/// @param sorted  `custom.object_ordering: sorted`
/// @param in_digits  the answers hold digits in place of coord tokens
/// @param has_order  the answers have an order, in which digits are taught, or are too few to tell
ProbeVerdict judge(const ProbeNumbers& numbers, bool sorted, bool in_digits = false,
                   bool has_order = false);

}  // namespace rematch
