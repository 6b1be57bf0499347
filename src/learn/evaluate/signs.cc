#include "learn/evaluate/signs.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rematch {
namespace {

constexpr unsigned kAll = kHealthLine | kReportLimit | kProbe;

constexpr Sign kSigns[] = {
    {.name = "precision",
     .label = "precision",
     .score = "eval_rollout_precision",
     .count = "eval_rollout_pred_objects",
     .judges = kHealthLine,
     .worse = Worse::kLower,
     .tolerance = 0.02,
     .advice = "it sees what is not there: `target_policy: rewrite` teaches no false positives "
               "(append keeps them); with rewrite, lower the learning rate",
     .stage1_advice = "it sees what is not there: check that the truth is complete, and compare "
                      "with fewer steps"},
    {.name = "f1",
     .label = "gate F1",
     .score = "eval_rollout_f1",
     .count = "eval_rollout_gt_objects",
     .judges = kReportFall,
     .worse = Worse::kLower,
     .tolerance = 0.02,
     .advice = "training made it worse: lower the learning rate, and compare with fewer steps "
               "(`rematch compare`)"},
    {.name = "label_accuracy",
     .label = "label accuracy",
     .score = "eval_rollout_label_accuracy",
     .count = "eval_rollout_matched",
     .judges = kHealthLine | kReportFall | kProbe,
     .worse = Worse::kLower,
     .tolerance = 0.02,
     .least = 0.70,
     .advice =
         "labels are being forgotten: `rewrite` teaches them (append never does), if the training "
         "data has the names of the validation data (`rematch data check` lists them)",
     .stage1_advice =
         "labels are being forgotten: lower the learning rate, and check that the training data "
         "has the names of the validation data (`rematch data check` lists them)"},
    {.name = "f1_labels",
     .label = "gate label F1",
     .score = "eval_rollout_f1_labels",
     .count = "eval_rollout_gt_objects",
     .judges = kReportFall,
     .worse = Worse::kLower,
     .tolerance = 0.02,
     .advice =
         "objects with the right name became fewer: look at the per-class table for what was lost"},
    {.name = "truncated",
     .label = "answers that did not end",
     .score = "eval_rollout_parse_truncated_rate",
     .judges = kAll,
     .worse = Worse::kHigher,
     .tolerance = 0.01,
     .most = 0.05,
     .advice = "answers do not end: `rollout_share: 0.5` mixes in whole truths with their end, and "
               "`max_new_tokens` must hold the longest truth",
     .stage1_advice = "answers do not end: `max_new_tokens` must hold the longest truth; if it "
                      "does, train more steps, since every truth of stage 1 shows its end"},
    {.name = "malformed",
     .label = "answers that are not JSON",
     .score = "eval_rollout_parse_malformed_rate",
     .judges = kAll,
     .worse = Worse::kHigher,
     .tolerance = 0.01,
     .most = 0.05,
     .advice = "answers break the format: lower the learning rate, or mix in whole truths with "
               "`rollout_share: 0.5`",
     .stage1_advice =
         "answers break the format: train more steps while this still falls, fewer if it rises"},
    {.name = "duplicates",
     .label = "predictions that repeat an earlier one",
     .score = "eval_rollout_duplicates",
     .count = "eval_rollout_pred_objects",
     .judges = kAll,
     .worse = Worse::kHigher,
     .tolerance = 0.01,
     .most = 0.10,
     .advice = "it writes objects twice: `rematch data check` finds objects that the truth has "
               "twice; `rewrite` shows each object once",
     .stage1_advice = "it writes objects twice: `rematch data check` finds objects that the truth "
                      "has twice; without these, `rematch probe` says whether stage 2 can help"},
    {.name = "pred_per_gt",
     .label = "predictions per truth",
     .score = "eval_rollout_pred_per_gt",
     .count = "eval_rollout_gt_objects",
     .judges = kAll,
     .worse = Worse::kFartherFromOne,
     .tolerance = 0.1,
     .least = 0.75,
     .most = 1.25,
     .advice = "it writes more objects than there are: `target_policy: rewrite` teaches where an "
               "answer ends (append teaches to continue); with rewrite, look for objects that the "
               "truth has twice (`rematch data check`)",
     .advice_if_fewer = "it stops before every object is named: check that the truth is complete, "
                        "since rewrite and stage 1 teach that nothing else is there",
     .stage1_advice = "it writes more objects than there are: look for objects that the truth has "
                      "twice (`rematch data check`)",
     .stage1_advice_if_fewer = "it stops before every object is named: check that the truth is "
                               "complete, since stage 1 teaches that nothing else is there"},
    {.name = "order_agreement",
     .label = "neighbours in the sorted order",
     .judges = kProbe,
     .worse = Worse::kLower,
     .least = 0.80},
    {.name = "f1_iou50",
     .label = "F1 @ IoU 0.5",
     .judges = kProbe,
     .worse = Worse::kLower,
     .least = 0.80},
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
