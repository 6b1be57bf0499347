#include "evaluate/signs.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rematch {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr unsigned kAll = kHealthLine | kReportLimit | kProbe;

constexpr Sign kSigns[] = {
    {"precision", "precision", "eval_rollout_precision", "eval_rollout_pred_objects", kHealthLine,
     Worse::kLower, 0.02, 0, kNoLimit,
     "it sees what is not there: `target_policy: rewrite` teaches no false positives (append keeps "
     "them); with rewrite, lower the learning rate",
     "",
     "it sees what is not there: check that the truth is complete, and compare with fewer steps"},
    {"f1", "F1", "eval_rollout_f1", "eval_rollout_gt_objects", kReportFall, Worse::kLower, 0.02, 0,
     kNoLimit,
     "training made it worse: lower the learning rate, and compare with fewer steps (`rematch "
     "compare`)"},
    {"label_accuracy", "label accuracy", "eval_rollout_label_accuracy", "eval_rollout_matched",
     kHealthLine | kReportFall | kProbe, Worse::kLower, 0.02, 0.70, kNoLimit,
     "labels are being forgotten: `rewrite` teaches them (append never does), if the training data "
     "has the names of the validation data (`rematch data check` lists them)",
     "",
     "labels are being forgotten: lower the learning rate, and check that the training data has "
     "the names of the validation data (`rematch data check` lists them)"},
    {"f1_labels", "label F1", "eval_rollout_f1_labels", "eval_rollout_gt_objects", kReportFall,
     Worse::kLower, 0.02, 0, kNoLimit,
     "objects with the right name became fewer: look at the per-class table for what was lost"},
    {"truncated", "answers that did not end", "eval_rollout_parse_truncated_rate", "", kAll,
     Worse::kHigher, 0.01, 0, 0.05,
     "answers do not end: `rollout_share: 0.5` mixes in whole truths with their end, and "
     "`max_new_tokens` must hold the longest truth",
     "",
     "answers do not end: `max_new_tokens` must hold the longest truth; if it does, train more "
     "steps, since every truth of stage 1 shows its end"},
    {"malformed", "answers that are not JSON", "eval_rollout_parse_malformed_rate", "", kAll,
     Worse::kHigher, 0.01, 0, 0.05,
     "answers break the format: lower the learning rate, or mix in whole truths with "
     "`rollout_share: 0.5`",
     "", "answers break the format: train more steps while this still falls, fewer if it rises"},
    {"duplicates", "predictions that repeat an earlier one", "eval_rollout_duplicates",
     "eval_rollout_pred_objects", kAll, Worse::kHigher, 0.01, 0, 0.10,
     "it writes objects twice: `rematch data check` finds objects that the truth has twice; "
     "`rewrite` shows each object once",
     "",
     "it writes objects twice: `rematch data check` finds objects that the truth has twice; "
     "without these, `rematch probe` says whether stage 2 can help"},
    {"pred_per_gt", "predictions per truth", "eval_rollout_pred_per_gt", "eval_rollout_gt_objects",
     kAll, Worse::kFartherFromOne, 0.1, 0.75, 1.25,
     "it writes more objects than there are: `target_policy: rewrite` teaches where an answer ends "
     "(append teaches to continue); with rewrite, look for objects that the truth has twice "
     "(`rematch data check`)",
     "it stops before every object is named: check that the truth is complete, since rewrite and "
     "stage 1 teach that nothing else is there",
     "it writes more objects than there are: look for objects that the truth has twice "
     "(`rematch data check`)",
     "it stops before every object is named: check that the truth is complete, since stage 1 "
     "teaches that nothing else is there"},
    {"order_agreement", "neighbours in the sorted order", "", "", kProbe, Worse::kLower, 0, 0.80},
    {"f1_iou50", "F1 @ IoU 0.5", "", "", kProbe, Worse::kLower, 0, 0.80},
};

}  // namespace

std::span<const Sign> signs() { return kSigns; }

const Sign& sign_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSigns), std::end(kSigns),
                                   [&](const Sign& sign) { return sign.name == name; });
  REMATCH_CHECK(found != std::end(kSigns), std::string(name));
  return *found;
}

}  // namespace rematch
