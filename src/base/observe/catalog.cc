#include "base/observe/catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
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
constexpr auto kPerStep = Reduction::kPerStep;

// Helpers for the table. A raw observation has the name of its metric unless a source is given.
MetricRow metric(const char* name, const char* unit, Reduction reduction, const char* meaning) {
  return {name, unit, reduction, name, "", 1, meaning};
}
MetricRow metric(const char* name, const char* unit, Reduction reduction, const char* source,
                 const char* meaning) {
  return {name, unit, reduction, source, "", 1, meaning};
}
MetricRow ratio(const char* name, const char* numerator, const char* denominator,
                const char* meaning, double factor = 1, const char* unit = "1") {
  return {name, unit, kRatio, numerator, denominator, factor, meaning};
}
/// health/SIGN: what an evaluation's metric has changed since the start of the run.
MetricRow change(const std::string& sign, const std::string& metric) {
  return {"health/" + sign,
          "1",
          kLast,
          "health/" + sign,
          "",
          1,
          "eval_rollout_" + metric + " minus its value then"};
}

// One entry per logged name. Raw values are added by the E-step (one per sample), the packer (one
// per row), the M-step and the loop (one per optimizer step).
const std::vector<MetricRow> kTrainingMetrics = {
    metric("loss", "nats", kMean, "the loss that the step minimises: loss/ce + loss/coord"),
    metric("grad_norm", "1", kLast, "global norm of the gradient before clipping"),
    metric("learning_rate", "1", kLast, "learning rate of the language-model group in this step"),
    metric("epoch", "epochs", kLast, "passes over the training data so far"),
    metric("data/skipped_samples", "samples", kSum,
           "samples left out of the window (`data.on_bad_sample: skip`)"),
    metric("loss/ce", "nats", kMean, "cross-entropy per supervised text token"),
    metric("loss/coord", "nats", kMean, "weighted softCE + W1 + gate per supervised coordinate"),
    metric("loss/coord_prefix", "nats", kMean,
           "as loss/coord, over coordinates of matched predictions only"),
    metric("loss/coord_tail", "nats", kMean,
           "as loss/coord, over coordinates of appended objects only"),

    ratio("rollout/precision", "rollout/matched", "rollout/valid_pred_objects",
          "fraction of valid predictions that are matched"),
    ratio("rollout/recall", "rollout/matched", "rollout/gt_objects",
          "fraction of ground truths that are matched"),
    ratio("rollout/f1", "rollout/matched", "rollout/valid_pred_objects+rollout/gt_objects",
          "harmonic mean of precision and recall, at `maskiou_gate`", 2),
    ratio("rollout/label_accuracy", "rollout/matched_labels", "rollout/matched",
          "matched pairs with equal labels (`label_match`)"),
    ratio("rollout/precision_labels", "rollout/matched_labels", "rollout/valid_pred_objects",
          "as rollout/precision, a pair counts only with equal labels"),
    ratio("rollout/recall_labels", "rollout/matched_labels", "rollout/gt_objects",
          "as rollout/recall, with equal labels"),
    ratio("rollout/f1_labels", "rollout/matched_labels",
          "rollout/valid_pred_objects+rollout/gt_objects", "as rollout/f1, with equal labels", 2),
    ratio("rollout/duplicates", "rollout/repeated_objects", "rollout/valid_pred_objects",
          "predictions with the desc of an earlier one and maskIoU >= 0.5 with it, among all"),
    ratio("rollout/pred_per_gt", "rollout/valid_pred_objects", "rollout/gt_objects",
          "valid predictions for each ground truth"),
    metric("rollout/gt_objects", "objects", kSum, "ground-truth objects"),
    metric("rollout/valid_pred_objects", "objects", kSum, "valid objects in the rollouts"),
    metric("rollout/fp", "objects", kSum, "valid predictions without a match"),
    metric("rollout/fn", "objects", kSum, "ground truths without a match"),
    metric("rollout/fn_appended", "objects", kSum, "ground truths without a pair in the target"),
    metric("rollout/gating_rejections", "pairs", kSum, "candidate pairs below maskiou_gate"),
    ratio("rollout/gating_rejection_rate", "rollout/gating_rejections", "rollout/candidate_pairs",
          "fraction of candidate pairs below maskiou_gate"),
    metric("rollout/matched_for_supervision", "objects", kSum,
           "pairs with predicted coordinates that the target shows and corrects"),
    metric("rollout/excluded_from_supervision", "objects", kSum,
           "pairs whose target could not be built; their ground truth is appended"),
    metric("rollout/is_rollout", "0 or 1", kMean,
           "0 when the window taught the full truth (`rollout_share`); over several steps their "
           "share"),
    ratio("rollout/matched_maskiou_mean", "rollout/matched_maskiou_sum", "rollout/matched",
          "maskIoU of the matched pairs"),
    metric("rollout/parse_truncated_rate", "1", kMean, "rollout/parse_truncated",
           "fraction of rollouts that end before their JSON is closed"),
    metric("rollout/parse_malformed_rate", "1", kMean, "rollout/parse_malformed",
           "fraction of rollouts that break the rules of JSON"),
    metric("rollout/parse_dropped_invalid", "entries", kSum, "entries that are not valid objects"),
    metric("rollout/sample_valid_pred_rate", "1", kMean, "rollout/sample_valid_pred",
           "fraction of samples with at least one valid prediction"),
    metric("rollout/sample_any_match_rate", "1", kMean, "rollout/sample_any_match",
           "fraction of samples with at least one match"),
    metric("rollout/prompt_len_mean", "tokens", kMean, "rollout/prompt_len",
           "length of the prompt, image tokens included"),
    metric("rollout/rollout_len_mean", "tokens", kMean, "rollout/gen_new_tokens",
           "length of the response without its stop token"),
    metric("rollout/rollout_len_p90", "tokens", kP90, "rollout/gen_new_tokens",
           "length of the response without its stop token"),
    metric("rollout/prefix_len_mean", "tokens", kMean, "rollout/prefix_len",
           "length of the part of the response that the segment keeps"),
    metric("rollout/append_len_mean", "tokens", kMean, "rollout/append_len",
           "length of the appended text: missing objects and closing brace; with `rewrite` the "
           "whole answer"),
    metric("rollout/encoded_len_mean", "tokens", kMean, "rollout/encoded_len",
           "length of the segment: prompt, prefix, append, end token"),
    metric("rollout/encoded_len_p90", "tokens", kP90, "rollout/encoded_len",
           "length of the segment: prompt, prefix, append, end token"),
    metric("rollout/gen_new_tokens_total", "tokens", kSum, "rollout/gen_new_tokens",
           "tokens generated"),
    metric("rollout/gen_new_tokens_mean", "tokens", kMean, "rollout/gen_new_tokens",
           "tokens generated per sample"),
    metric("rollout/gen_new_tokens_p90", "tokens", kP90, "rollout/gen_new_tokens",
           "tokens generated per sample"),
    metric("rollout/gen_new_tokens_p99", "tokens", kP99, "rollout/gen_new_tokens",
           "tokens generated per sample"),
    ratio("rollout/gen_tokens_per_s", "rollout/gen_new_tokens", "time/rollout_generate_s",
          "generation speed", 1, "tokens/s"),
    metric(
        "rollout/buffer_reuse", "0 or 1", kMean,
        "1 when the step reused a window instead of rolling out; over several steps their share"),
    metric("rollout/buffer_window_step0", "step", kLast,
           "optimizer step at which the window was made"),
    metric("rollout/buffer_completed_steps", "steps", kLast, "optimizer steps done on this window"),

    metric("packing/post_rollout_fill", "1", kMean, "row length divided by the packing length"),
    metric("packing/post_rollout_selected_total_len", "tokens", kSum, "tokens in the trained rows"),
    metric("packing/post_rollout_segments", "segments", kSum, "segments in the trained rows"),
    metric("packing/post_rollout_buffer", "segments", kLast,
           "segments left waiting in the carry buffer"),

    metric("time/rollout_generate_s", "s", kPerStep, "generating the rollouts"),
    metric("time/rollout_parse_match_s", "s", kPerStep, "parsing and matching them"),
    metric("time/rollout_teacher_encode_s", "s", kPerStep, "building targets and segments"),
    metric("time/post_rollout_pack_s", "s", kPerStep, "packing segments into rows"),
    metric("time/forward_s", "s", kPerStep,
           "forward passes and losses; on a GPU the time to queue them"),
    metric("time/backward_s", "s", kPerStep,
           "backward passes; on a GPU also the wait for all queued passes"),
    metric("time/optimizer_s", "s", kPerStep, "clipping and the update"),
    metric("time/rank_wait_s", "s", kPerStep,
           "waiting for other ranks and their messages, on the rank that waited longest"),
    metric("time/step_s", "s", kPerStep, "the whole optimizer step with its E-step"),
};

const std::vector<MetricRow> kHealthAndCocoMetrics = {
    metric("health/worse", "signs", kLast,
           "signs of an evaluation that are worse than at the start of the run, or than its "
           "first evaluation"),
    change("precision", "precision"),
    change("label_accuracy", "label_accuracy"),
    change("duplicates", "duplicates"),
    change("truncated", "parse_truncated_rate"),
    change("malformed", "parse_malformed_rate"),
    change("pred_per_gt", "pred_per_gt"),
    change("absent_answered", "absent_answered"),
    metric("health/unusable_answers", "answers", kLast,
           "answers of the first step, when all of them are malformed or truncated"),

    metric("coco_ap", "1", kLast,
           "COCO's average precision of boxes, mean over classes and IoU 0.50:0.05:0.95; -1: "
           "nothing to find"),
    metric("coco_ap50", "1", kLast, "as coco_ap, at IoU 0.50"),
    metric("coco_ap75", "1", kLast, "as coco_ap, at IoU 0.75"),
    metric("coco_ap_small", "1", kLast, "as coco_ap, objects up to 32 x 32 pixels"),
    metric("coco_ap_medium", "1", kLast, "as coco_ap, up to 96 x 96 pixels"),
    metric("coco_ap_large", "1", kLast, "as coco_ap, larger ones"),
    metric("coco_ar_1", "1", kLast,
           "average recall with the first prediction of a class and image"),
    metric("coco_ar_10", "1", kLast, "with the first 10"),
    metric("coco_ar_100", "1", kLast, "with the first 100"),
    metric("coco_ar_small", "1", kLast, "as coco_ar_100, objects up to 32 x 32 pixels"),
    metric("coco_ar_medium", "1", kLast, "as coco_ar_100, up to 96 x 96 pixels"),
    metric("coco_ar_large", "1", kLast, "as coco_ar_100, larger ones"),
};

/// The metrics of an evaluation, in the order of the table.
std::vector<MetricRow> evaluation_rows() {
  std::vector<MetricRow> rows = {
      metric("eval_loss", "nats", kLast, "teacher-forced loss on val_jsonl (stage 1)"),
      metric("eval_token_acc", "1", kLast,
             "fraction of supervised text tokens predicted correctly (stage 1)")};
  // eval_rollout_NAME is reduced like rollout/NAME.
  const auto add_rollout_metrics = [&](const Strings& names) {
    for (const std::string& name : names) {
      MetricRow row = *std::ranges::find(kTrainingMetrics, "rollout/" + name, &MetricRow::name);
      row.name = "eval_rollout_" + name;
      row.meaning = "as rollout/" + name + ", on val_jsonl";
      rows.push_back(std::move(row));
    }
  };
  add_rollout_metrics({"precision", "recall", "f1"});
  rows.push_back(metric("eval_rollout_pred_objects", "objects", kSum, "rollout/valid_pred_objects",
                        "as rollout/valid_pred_objects, on val_jsonl"));
  add_rollout_metrics({"gt_objects"});
  rows.push_back(
      metric("eval_rollout_matched", "objects", kSum, "rollout/matched", "matched pairs"));
  add_rollout_metrics({"fp", "fn", "gating_rejections", "parse_dropped_invalid",
                       "parse_truncated_rate", "parse_malformed_rate", "sample_valid_pred_rate",
                       "sample_any_match_rate", "matched_maskiou_mean", "label_accuracy",
                       "precision_labels", "recall_labels", "f1_labels", "duplicates",
                       "pred_per_gt"});
  rows.push_back(ratio("eval_rollout_absent_answered", "rollout/absent_answered",
                       "rollout/absent_names",
                       "share of the names that a prompt lists and no object of the picture has, "
                       "which an answer gives a box"));
  rows.push_back(metric("eval_rollout_absent_names", "names", kSum, "rollout/absent_names",
                        "such names in the prompts of readable answers"));
  rows.push_back(ratio("eval_rollout_empty_answered", "rollout/empty_answered",
                       "rollout/empty_samples",
                       "share of readable answers to pictures without objects that give a box"));
  rows.push_back(metric("eval_runtime", "s", kLast, "duration of the evaluation"));
  rows.push_back(metric("eval_samples_per_second", "samples/s", kLast,
                        "validation samples evaluated per second"));
  return rows;
}

std::vector<MetricRow> make_table() {
  std::vector<MetricRow> table = kTrainingMetrics;
  for (const auto& rows : {evaluation_rows(), kHealthAndCocoMetrics})
    table.insert(table.end(), rows.begin(), rows.end());
  return table;
}

const std::vector<MetricRow> kTable = make_table();

Strings split_names(const std::string& joined) {
  return joined.empty() ? Strings{} : split(joined, '+');
}

Strings raw_names(const MetricRow& row) {
  Strings names = split_names(row.source);
  for (std::string& name : split_names(row.denominator)) names.push_back(std::move(name));
  return names;
}

/// Percentile with linear interpolation, numpy's default.
double percentile(std::vector<double> values, double quantile) {
  std::ranges::sort(values);
  const double position = quantile * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

double sum_all(const MetricsBag& bag, const std::string& joined) {
  double total = 0;
  for (const std::string& name : split_names(joined)) total += bag.sum(name);
  return total;
}

bool is_in(MetricScope scope, const MetricRow& row) {
  const bool is_evaluation = row.name.starts_with("eval_"), is_coco = row.name.starts_with("coco_"),
             is_health = row.name.starts_with("health/");
  switch (scope) {
    case MetricScope::kStep: return !is_evaluation && !is_coco && !is_health;
    case MetricScope::kEvaluation: return is_evaluation;
    case MetricScope::kHealth: return is_health;
    case MetricScope::kCoco: return is_coco;
    case MetricScope::kGate: break;
  }
  return is_evaluation && row.reduction == kRatio && row.source.starts_with("rollout/matched");
}

double reduce_row(const MetricRow& row, const MetricsBag& bag, int64_t num_steps) {
  const std::vector<double>& values = bag.values(row.source);
  switch (row.reduction) {
    case kSum: return bag.sum(row.source);
    case kMean: return bag.sum(row.source) / static_cast<double>(values.size());
    case kLast: return values.back();
    case kP90: return percentile(values, 0.90);
    case kP99: return percentile(values, 0.99);
    case kPerStep: return bag.sum(row.source) / static_cast<double>(num_steps);
    case kRatio: break;
  }
  const double whole = sum_all(bag, row.denominator);
  return whole == 0 ? 0.0 : row.factor * sum_all(bag, row.source) / whole;
}

/// Raw names outside the table. Loss terms of other repositories may log `loss/NAME`, once per
/// step; any other such name is a bug.
Strings uncatalogued_losses(const MetricsBag& bag) {
  static const std::set<std::string> kKnown = [] {
    std::set<std::string> known;
    for (const MetricRow& row : kTable) {
      for (std::string& name : raw_names(row)) known.insert(std::move(name));
    }
    return known;
  }();
  Strings losses;
  for (const auto& [name, values] : bag.all()) {
    if (kKnown.count(name) == 1) continue;
    REMATCH_CHECK(name.starts_with("loss/"),
                  name + " is not in the table of base/observe/catalog.cc");
    losses.push_back(name);
  }
  return losses;
}

}  // namespace

const std::vector<MetricRow>& metric_table() { return kTable; }

std::vector<std::pair<std::string, double>> reduce_metrics(const MetricsBag& bag, MetricScope scope,
                                                           int64_t num_steps) {
  REMATCH_CHECK(num_steps >= 1, fmt::format("{} steps", num_steps));
  const Strings losses = uncatalogued_losses(bag);
  std::vector<std::pair<std::string, double>> reduced;
  for (const MetricRow& row : kTable) {
    if (!is_in(scope, row)) continue;
    const Strings names = raw_names(row);
    const bool is_observed = std::ranges::all_of(
        names, [&](const std::string& name) { return !bag.values(name).empty(); });
    if (is_observed) reduced.emplace_back(row.name, reduce_row(row, bag, num_steps));
  }
  if (scope != MetricScope::kStep) return reduced;
  for (const std::string& name : losses)
    reduced.emplace_back(name, bag.sum(name) / static_cast<double>(bag.values(name).size()));
  return reduced;
}

std::vector<std::pair<std::string, double>> reduce_gate_metrics(const MetricsBag& bag,
                                                                double gate) {
  std::vector<std::pair<std::string, double>> reduced = reduce_metrics(bag, MetricScope::kGate);
  for (auto& [name, value] : reduced) name += fmt::format("_iou{:02.0f}", std::round(gate * 100));
  return reduced;
}

Strings evaluation_metrics(bool teacher_forced, bool rollouts) {
  Strings names;
  for (const MetricRow& row : kTable) {
    const std::string_view name = row.name;
    if (!is_in(MetricScope::kEvaluation, row)) continue;
    const bool is_rollout = name.starts_with("eval_rollout_"),
               is_teacher_forced = name == "eval_loss" || name == "eval_token_acc";
    if (is_rollout ? rollouts : !is_teacher_forced || teacher_forced) names.emplace_back(name);
  }
  return names;
}

}  // namespace rematch
