#include "observe/catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr auto kSum = Reduction::kSum;
constexpr auto kMean = Reduction::kMean;
constexpr auto kLast = Reduction::kLast;
constexpr auto kP90 = Reduction::kP90;
constexpr auto kP99 = Reduction::kP99;
constexpr auto kRatio = Reduction::kRatio;

// One row per logged name: name, unit, reduction, raw source, denominator, factor, meaning. Raw
// values are added by the E-step (one per sample), the packer (one per row), the M-step and the
// loop (one per optimizer step).
const std::vector<MetricRow> kTable = {
    {"loss", "nats", kLast, "loss", "", 1,
     "the loss that the step minimises: loss/ce + loss/coord"},
    {"grad_norm", "1", kLast, "grad_norm", "", 1, "global norm of the gradient before clipping"},
    {"learning_rate", "1", kLast, "learning_rate", "", 1,
     "learning rate of the language-model group in this step"},
    {"epoch", "epochs", kLast, "epoch", "", 1, "passes over the training data so far"},
    {"data/skipped_samples", "samples", kSum, "data/skipped_samples", "", 1,
     "samples left out of the window (`data.on_bad_sample: skip`)"},
    {"loss/ce", "nats", kLast, "loss/ce", "", 1, "cross-entropy per supervised text token"},
    {"loss/coord", "nats", kLast, "loss/coord", "", 1,
     "weighted softCE + W1 + gate per supervised coordinate"},
    {"loss/coord_prefix", "nats", kLast, "loss/coord_prefix", "", 1,
     "as loss/coord, over coordinates of matched predictions only"},
    {"loss/coord_tail", "nats", kLast, "loss/coord_tail", "", 1,
     "as loss/coord, over coordinates of appended objects only"},

    {"rollout/precision", "1", kRatio, "rollout/matched", "rollout/valid_pred_objects", 1,
     "fraction of valid predictions that are matched"},
    {"rollout/recall", "1", kRatio, "rollout/matched", "rollout/gt_objects", 1,
     "fraction of ground truths that are matched"},
    {"rollout/f1", "1", kRatio, "rollout/matched", "rollout/valid_pred_objects+rollout/gt_objects",
     2, "harmonic mean of precision and recall"},
    {"rollout/label_accuracy", "1", kRatio, "rollout/matched_labels", "rollout/matched", 1,
     "matched pairs with equal labels (`label_match`)"},
    {"rollout/precision_labels", "1", kRatio, "rollout/matched_labels",
     "rollout/valid_pred_objects", 1, "as rollout/precision, a pair counts only with equal labels"},
    {"rollout/recall_labels", "1", kRatio, "rollout/matched_labels", "rollout/gt_objects", 1,
     "as rollout/recall, with equal labels"},
    {"rollout/f1_labels", "1", kRatio, "rollout/matched_labels",
     "rollout/valid_pred_objects+rollout/gt_objects", 2, "as rollout/f1, with equal labels"},
    {"rollout/duplicates", "1", kRatio, "rollout/repeated_objects", "rollout/valid_pred_objects", 1,
     "predictions with the desc of an earlier one and maskIoU >= 0.5 with it, among all"},
    {"rollout/pred_per_gt", "1", kRatio, "rollout/valid_pred_objects", "rollout/gt_objects", 1,
     "valid predictions for each ground truth"},
    {"rollout/gt_objects", "objects", kSum, "rollout/gt_objects", "", 1, "ground-truth objects"},
    {"rollout/valid_pred_objects", "objects", kSum, "rollout/valid_pred_objects", "", 1,
     "valid objects in the rollouts"},
    {"rollout/fp", "objects", kSum, "rollout/fp", "", 1, "valid predictions without a match"},
    {"rollout/fn", "objects", kSum, "rollout/fn", "", 1, "ground truths without a match"},
    {"rollout/fn_appended", "objects", kSum, "rollout/fn_appended", "", 1,
     "ground truths without a pair in the target"},
    {"rollout/gating_rejections", "pairs", kSum, "rollout/gating_rejections", "", 1,
     "candidate pairs below maskiou_gate"},
    {"rollout/gating_rejection_rate", "1", kRatio, "rollout/gating_rejections",
     "rollout/candidate_pairs", 1, "fraction of candidate pairs below maskiou_gate"},
    {"rollout/matched_for_supervision", "objects", kSum, "rollout/matched_for_supervision", "", 1,
     "pairs whose predicted coordinates the target shows and corrects"},
    {"rollout/excluded_from_supervision", "objects", kSum, "rollout/excluded_from_supervision", "",
     1, "pairs whose target could not be built; their ground truth is appended"},
    {"rollout/is_rollout", "0 or 1", kLast, "rollout/is_rollout", "", 1,
     "0 when the window taught the full truth (`rollout_share`)"},
    {"rollout/matched_maskiou_mean", "1", kRatio, "rollout/matched_maskiou_sum", "rollout/matched",
     1, "maskIoU of the matched pairs"},
    {"rollout/parse_truncated_rate", "1", kMean, "rollout/parse_truncated", "", 1,
     "fraction of rollouts that end before their JSON is closed"},
    {"rollout/parse_malformed_rate", "1", kMean, "rollout/parse_malformed", "", 1,
     "fraction of rollouts that break the rules of JSON"},
    {"rollout/parse_dropped_invalid", "entries", kSum, "rollout/parse_dropped_invalid", "", 1,
     "entries that are not valid objects"},
    {"rollout/sample_valid_pred_rate", "1", kMean, "rollout/sample_valid_pred", "", 1,
     "fraction of samples with at least one valid prediction"},
    {"rollout/sample_any_match_rate", "1", kMean, "rollout/sample_any_match", "", 1,
     "fraction of samples with at least one match"},
    {"rollout/prompt_len_mean", "tokens", kMean, "rollout/prompt_len", "", 1,
     "length of the prompt, image tokens included"},
    {"rollout/rollout_len_mean", "tokens", kMean, "rollout/gen_new_tokens", "", 1,
     "length of the response without its stop token"},
    {"rollout/rollout_len_p90", "tokens", kP90, "rollout/gen_new_tokens", "", 1,
     "length of the response without its stop token"},
    {"rollout/prefix_len_mean", "tokens", kMean, "rollout/prefix_len", "", 1,
     "length of the part of the response that the segment keeps"},
    {"rollout/append_len_mean", "tokens", kMean, "rollout/append_len", "", 1,
     "length of the appended text: missing objects and closing brace; with `rewrite` the whole "
     "answer"},
    {"rollout/encoded_len_mean", "tokens", kMean, "rollout/encoded_len", "", 1,
     "length of the segment: prompt, prefix, append, end token"},
    {"rollout/encoded_len_p90", "tokens", kP90, "rollout/encoded_len", "", 1,
     "length of the segment: prompt, prefix, append, end token"},
    {"rollout/gen_new_tokens_total", "tokens", kSum, "rollout/gen_new_tokens", "", 1,
     "tokens generated"},
    {"rollout/gen_new_tokens_mean", "tokens", kMean, "rollout/gen_new_tokens", "", 1,
     "tokens generated per sample"},
    {"rollout/gen_new_tokens_p90", "tokens", kP90, "rollout/gen_new_tokens", "", 1,
     "tokens generated per sample"},
    {"rollout/gen_new_tokens_p99", "tokens", kP99, "rollout/gen_new_tokens", "", 1,
     "tokens generated per sample"},
    {"rollout/gen_tokens_per_s", "tokens/s", kRatio, "rollout/gen_new_tokens",
     "time/rollout_generate_s", 1, "generation speed"},
    {"rollout/buffer_reuse", "0 or 1", kLast, "rollout/buffer_reuse", "", 1,
     "1 when the step reused a window instead of rolling out"},
    {"rollout/buffer_window_step0", "step", kLast, "rollout/buffer_window_step0", "", 1,
     "optimizer step at which the window was made"},
    {"rollout/buffer_completed_steps", "steps", kLast, "rollout/buffer_completed_steps", "", 1,
     "optimizer steps done on this window"},

    {"packing/post_rollout_fill", "1", kMean, "packing/post_rollout_fill", "", 1,
     "row length divided by the packing length"},
    {"packing/post_rollout_selected_total_len", "tokens", kSum,
     "packing/post_rollout_selected_total_len", "", 1, "tokens in the trained rows"},
    {"packing/post_rollout_segments", "segments", kSum, "packing/post_rollout_segments", "", 1,
     "segments in the trained rows"},
    {"packing/post_rollout_buffer", "segments", kLast, "packing/post_rollout_buffer", "", 1,
     "segments left waiting in the carry buffer"},

    {"time/rollout_generate_s", "s", kSum, "time/rollout_generate_s", "", 1,
     "generating the rollouts"},
    {"time/rollout_parse_match_s", "s", kSum, "time/rollout_parse_match_s", "", 1,
     "parsing and matching them"},
    {"time/rollout_teacher_encode_s", "s", kSum, "time/rollout_teacher_encode_s", "", 1,
     "building targets and segments"},
    {"time/post_rollout_pack_s", "s", kSum, "time/post_rollout_pack_s", "", 1,
     "packing segments into rows"},
    {"time/forward_s", "s", kSum, "time/forward_s", "", 1,
     "forward passes and losses; on a GPU the time to queue them"},
    {"time/backward_s", "s", kSum, "time/backward_s", "", 1,
     "backward passes; on a GPU also the wait for all queued passes"},
    {"time/optimizer_s", "s", kSum, "time/optimizer_s", "", 1, "clipping and the update"},
    {"time/rank_wait_s", "s", kSum, "time/rank_wait_s", "", 1,
     "waiting for other ranks and their messages, on the rank that waited longest"},
    {"time/step_s", "s", kSum, "time/step_s", "", 1, "the whole optimizer step with its E-step"},

    {"eval_loss", "nats", kLast, "eval_loss", "", 1, "teacher-forced loss on val_jsonl (stage 1)"},
    {"eval_token_acc", "1", kLast, "eval_token_acc", "", 1,
     "fraction of supervised text tokens predicted correctly (stage 1)"},
    {"eval_rollout_precision", "1", kRatio, "rollout/matched", "rollout/valid_pred_objects", 1,
     "as rollout/precision, on val_jsonl"},
    {"eval_rollout_recall", "1", kRatio, "rollout/matched", "rollout/gt_objects", 1,
     "as rollout/recall"},
    {"eval_rollout_f1", "1", kRatio, "rollout/matched",
     "rollout/valid_pred_objects+rollout/gt_objects", 2, "as rollout/f1"},
    {"eval_rollout_pred_objects", "objects", kSum, "rollout/valid_pred_objects", "", 1,
     "as rollout/valid_pred_objects"},
    {"eval_rollout_gt_objects", "objects", kSum, "rollout/gt_objects", "", 1,
     "as rollout/gt_objects"},
    {"eval_rollout_matched", "objects", kSum, "rollout/matched", "", 1, "matched pairs"},
    {"eval_rollout_fp", "objects", kSum, "rollout/fp", "", 1, "as rollout/fp"},
    {"eval_rollout_fn", "objects", kSum, "rollout/fn", "", 1, "as rollout/fn"},
    {"eval_rollout_gating_rejections", "pairs", kSum, "rollout/gating_rejections", "", 1,
     "as rollout/gating_rejections"},
    {"eval_rollout_parse_dropped_invalid", "entries", kSum, "rollout/parse_dropped_invalid", "", 1,
     "as rollout/parse_dropped_invalid"},
    {"eval_rollout_parse_truncated_rate", "1", kMean, "rollout/parse_truncated", "", 1,
     "as rollout/parse_truncated_rate"},
    {"eval_rollout_parse_malformed_rate", "1", kMean, "rollout/parse_malformed", "", 1,
     "as rollout/parse_malformed_rate"},
    {"eval_rollout_sample_valid_pred_rate", "1", kMean, "rollout/sample_valid_pred", "", 1,
     "as rollout/sample_valid_pred_rate"},
    {"eval_rollout_sample_any_match_rate", "1", kMean, "rollout/sample_any_match", "", 1,
     "as rollout/sample_any_match_rate"},
    {"eval_rollout_matched_maskiou_mean", "1", kRatio, "rollout/matched_maskiou_sum",
     "rollout/matched", 1, "as rollout/matched_maskiou_mean"},
    {"eval_rollout_label_accuracy", "1", kRatio, "rollout/matched_labels", "rollout/matched", 1,
     "as rollout/label_accuracy"},
    {"eval_rollout_precision_labels", "1", kRatio, "rollout/matched_labels",
     "rollout/valid_pred_objects", 1, "as rollout/precision_labels"},
    {"eval_rollout_recall_labels", "1", kRatio, "rollout/matched_labels", "rollout/gt_objects", 1,
     "as rollout/recall_labels"},
    {"eval_rollout_f1_labels", "1", kRatio, "rollout/matched_labels",
     "rollout/valid_pred_objects+rollout/gt_objects", 2, "as rollout/f1_labels"},
    {"eval_rollout_duplicates", "1", kRatio, "rollout/repeated_objects",
     "rollout/valid_pred_objects", 1, "as rollout/duplicates"},
    {"eval_rollout_pred_per_gt", "1", kRatio, "rollout/valid_pred_objects", "rollout/gt_objects", 1,
     "as rollout/pred_per_gt"},
    {"eval_runtime", "s", kLast, "eval_runtime", "", 1, "duration of the evaluation"},
    {"eval_samples_per_second", "samples/s", kLast, "eval_samples_per_second", "", 1,
     "validation samples evaluated per second"},

    {"health/worse", "signs", kLast, "health/worse", "", 1,
     "signs of an evaluation that are worse than at the start of the run, or than its first "
     "evaluation"},
    {"health/precision", "1", kLast, "health/precision", "", 1,
     "eval_rollout_precision minus its value then"},
    {"health/label_accuracy", "1", kLast, "health/label_accuracy", "", 1,
     "eval_rollout_label_accuracy minus its value then"},
    {"health/duplicates", "1", kLast, "health/duplicates", "", 1,
     "eval_rollout_duplicates minus its value then"},
    {"health/truncated", "1", kLast, "health/truncated", "", 1,
     "eval_rollout_parse_truncated_rate minus its value then"},
    {"health/malformed", "1", kLast, "health/malformed", "", 1,
     "eval_rollout_parse_malformed_rate minus its value then"},
    {"health/pred_per_gt", "1", kLast, "health/pred_per_gt", "", 1,
     "eval_rollout_pred_per_gt minus its value then"},
    {"health/unusable_answers", "answers", kLast, "health/unusable_answers", "", 1,
     "answers of the first step, when all of them are malformed or truncated"},

    {"coco_ap", "1", kLast, "coco_ap", "", 1,
     "COCO's average precision of boxes, mean over classes and IoU 0.50:0.05:0.95; -1: nothing to "
     "find"},
    {"coco_ap50", "1", kLast, "coco_ap50", "", 1, "as coco_ap, at IoU 0.50"},
    {"coco_ap75", "1", kLast, "coco_ap75", "", 1, "as coco_ap, at IoU 0.75"},
    {"coco_ap_small", "1", kLast, "coco_ap_small", "", 1,
     "as coco_ap, objects up to 32 x 32 pixels"},
    {"coco_ap_medium", "1", kLast, "coco_ap_medium", "", 1, "as coco_ap, up to 96 x 96 pixels"},
    {"coco_ap_large", "1", kLast, "coco_ap_large", "", 1, "as coco_ap, larger ones"},
    {"coco_ar_1", "1", kLast, "coco_ar_1", "", 1,
     "average recall with the first prediction of a class and image"},
    {"coco_ar_10", "1", kLast, "coco_ar_10", "", 1, "with the first 10"},
    {"coco_ar_100", "1", kLast, "coco_ar_100", "", 1, "with the first 100"},
    {"coco_ar_small", "1", kLast, "coco_ar_small", "", 1,
     "as coco_ar_100, objects up to 32 x 32 pixels"},
    {"coco_ar_medium", "1", kLast, "coco_ar_medium", "", 1, "as coco_ar_100, up to 96 x 96 pixels"},
    {"coco_ar_large", "1", kLast, "coco_ar_large", "", 1, "as coco_ar_100, larger ones"},
};

std::vector<std::string> names_of(const char* joined) {
  return *joined == '\0' ? std::vector<std::string>{} : split(joined, '+');
}

std::vector<std::string> raw_names(const MetricRow& row) {
  std::vector<std::string> names = names_of(row.source);
  for (std::string& name : names_of(row.denominator)) names.push_back(std::move(name));
  return names;
}

/// numpy's default: linear between the two neighbours.
double percentile(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end());
  const double position = quantile * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

double sum_of(const MetricsBag& bag, const char* joined) {
  double total = 0;
  for (const std::string& name : names_of(joined)) total += bag.sum(name);
  return total;
}

bool is_in(MetricScope scope, const MetricRow& row) {
  const std::string_view name = row.name;
  const bool of_evaluation = name.starts_with("eval_"), of_coco = name.starts_with("coco_"),
             of_health = name.starts_with("health/");
  if (scope == MetricScope::kStep) return !of_evaluation && !of_coco && !of_health;
  if (scope == MetricScope::kHealth) return of_health;
  if (scope != MetricScope::kGate) return scope == MetricScope::kCoco ? of_coco : of_evaluation;
  return of_evaluation && row.reduction == kRatio &&
         std::string_view(row.source).starts_with("rollout/matched");
}

double reduce_row(const MetricRow& row, const MetricsBag& bag) {
  const std::vector<double>& values = bag.values(row.source);
  switch (row.reduction) {
    case kSum: return bag.sum(row.source);
    case kMean: return bag.sum(row.source) / static_cast<double>(values.size());
    case kLast: return values.back();
    case kP90: return percentile(values, 0.90);
    case kP99: return percentile(values, 0.99);
    case kRatio: break;
  }
  const double whole = sum_of(bag, row.denominator);
  return whole == 0 ? 0.0 : row.factor * sum_of(bag, row.source) / whole;
}

/// Raw names that no row reads. Terms of the loss that are not in this repository may log
/// `loss/NAME`, one value a step; every other is a bug.
std::vector<std::string> uncatalogued_losses(const MetricsBag& bag) {
  static const std::set<std::string> kKnown = [] {
    std::set<std::string> known;
    for (const MetricRow& row : kTable) {
      for (std::string& name : raw_names(row)) known.insert(std::move(name));
    }
    return known;
  }();
  std::vector<std::string> losses;
  for (const auto& [name, values] : bag.all()) {
    if (kKnown.count(name) == 1) continue;
    REMATCH_CHECK(name.starts_with("loss/"), name + " is not in the table of observe/catalog.cc");
    losses.push_back(name);
  }
  return losses;
}

std::string reduction_text(const MetricRow& row) {
  const auto code = [](const char* joined) { return "`" + join(names_of(joined), "` + `") + "`"; };
  const std::string of = std::string(row.source) == row.name ? "" : " of " + code(row.source);
  switch (row.reduction) {
    case kSum: return "sum" + of;
    case kMean: return "mean" + of;
    case kLast: return "value" + of;
    case kP90: return "90th percentile" + of;
    case kP99: return "99th percentile" + of;
    case kRatio: break;
  }
  const bool is_sum = std::string(row.denominator).find('+') != std::string::npos;
  return fmt::format("{}{} / {}", row.factor == 1 ? "" : fmt::format("{} · ", row.factor),
                     code(row.source),
                     is_sum ? "(" + code(row.denominator) + ")" : code(row.denominator));
}

}  // namespace

const std::vector<MetricRow>& metric_table() { return kTable; }

std::vector<std::pair<std::string, double>> reduce_metrics(const MetricsBag& bag,
                                                           MetricScope scope) {
  const std::vector<std::string> losses = uncatalogued_losses(bag);
  std::vector<std::pair<std::string, double>> reduced;
  for (const MetricRow& row : kTable) {
    if (!is_in(scope, row)) continue;
    const std::vector<std::string> names = raw_names(row);
    const bool is_observed = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return !bag.values(name).empty();
    });
    if (is_observed) reduced.emplace_back(row.name, reduce_row(row, bag));
  }
  if (scope != MetricScope::kStep) return reduced;
  for (const std::string& name : losses) reduced.emplace_back(name, bag.values(name).back());
  return reduced;
}

std::vector<std::string> evaluation_metrics(bool teacher_forced, bool rollouts) {
  std::vector<std::string> names;
  for (const MetricRow& row : kTable) {
    const std::string_view name = row.name;
    if (!is_in(MetricScope::kEvaluation, row)) continue;
    const bool is_rollout = name.starts_with("eval_rollout_"),
               is_teacher_forced = name == "eval_loss" || name == "eval_token_acc";
    if (is_rollout ? rollouts : !is_teacher_forced || teacher_forced) names.emplace_back(name);
  }
  return names;
}

std::string metrics_markdown() {
  std::string text =
      "# Metrics\n\n"
      "Generated from the table in `src/observe/catalog.cc` (`metrics_markdown()`); a test "
      "compares the two.\n\n"
      "Every value is reduced once per optimizer step, over all micro-batches and ranks: sums are "
      "sums over samples, means and percentiles "
      "are\n"
      "over samples (never means of means), ratios divide sums, and an undefined ratio is 0. A "
      "metric that was not observed in a step is\n"
      "absent from its line. Names in the third column that have no row of their own are raw "
      "counts, not logged.\n"
      "`rematch eval` also writes precision, recall, F1 and mean maskIoU at other IoU gates, with "
      "a suffix such as `_iou50`.\n"
      "COCO's scores (`rematch eval`) take boxes in pixels (a polygon by its bounding box), the "
      "canonical labels of the set as classes "
      "and\n"
      "the scores of objects from their probabilities; without these (`coco_ranking`: `order`) the "
      "k-th object of an answer has 1 - k/1000.\n"
      "They equal pycocotools' on the same boxes.\n\n"
      "| name | unit | how | meaning |\n|---|---|---|---|\n";
  for (const MetricRow& row : kTable) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.name, row.unit, reduction_text(row),
                        row.meaning);
  }
  return text;
}

}  // namespace rematch
