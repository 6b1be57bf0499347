#include "report/score_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rematch {
namespace {

// Beyond these a property is called out.
constexpr double kMostTruncated = 0.02, kMostMalformed = 0.02, kMostRepeated = 0.02,
                 kLeastPerTruth = 0.75, kMostPerTruth = 1.33, kForgotten = 0.02;

const double* find(const EvaluationFile& file, const std::string& key) {
  const auto found = file.scores.find(key);
  return found == file.scores.end() || found->second < 0 ? nullptr : &found->second;
}

/// One property with a limit. Nothing when the evaluation does not tell.
void judge(std::vector<HealthItem>& items, const EvaluationFile& file, const char* key,
           const char* name, bool percent, double least, double most, const char* too_low,
           const char* too_high) {
  const double* value = find(file, key);
  if (value == nullptr) return;
  HealthItem item{
      .name = name,
      .value = percent ? fmt::format("{:.1f} %", *value * 100) : fmt::format("{:.2f}", *value)};
  item.good = *value >= least && *value <= most;
  if (!item.good) item.advice = *value < least ? too_low : too_high;
  items.push_back(std::move(item));
}

/// A score that should not fall.
void judge_fall(std::vector<HealthItem>& items, const EvaluationFile& now,
                const EvaluationFile& before, const char* key, const char* name,
                const char* advice) {
  const double *after = find(now, key), *first = find(before, key);
  if (after == nullptr || first == nullptr) return;
  HealthItem item{.name = name, .value = fmt::format("{:.3f} → {:.3f}", *first, *after)};
  item.good = *after >= *first - kForgotten;
  if (!item.good) item.advice = advice;
  items.push_back(std::move(item));
}

}  // namespace

const std::vector<ScoreKind>& score_kinds() {
  static const std::vector<ScoreKind> kKinds = {
      {"eval_rollout_f1_labels_iou50", "label F1 @ IoU 0.5", 1},
      {"eval_rollout_f1_iou50", "F1 @ IoU 0.5", 1},
      {"eval_rollout_f1_labels", "label F1", 1},
      {"eval_rollout_f1", "F1", 1},
      {"eval_rollout_precision", "precision", 1},
      {"eval_rollout_recall", "recall", 1},
      {"eval_rollout_label_accuracy", "label accuracy of matches", 1},
      {"eval_rollout_matched_maskiou_mean", "mean IoU of matches", 1},
      {"coco_ap", "COCO AP", 1},
      {"coco_ap50", "COCO AP50", 1},
      {"coco_ar_100", "COCO AR", 1},
      {"eval_rollout_duplicates", "repeated predictions", -1},
      {"eval_rollout_pred_per_gt", "predictions per truth", 0},
      {"eval_rollout_parse_truncated_rate", "truncated answers", -1},
      {"eval_rollout_parse_malformed_rate", "malformed answers", -1},
      {"eval_loss", "loss on the truth", -1}};
  return kKinds;
}

std::vector<NamedEvaluation> evaluations_of(const std::vector<RunData>& runs) {
  std::vector<NamedEvaluation> all;
  if (runs.size() == 1 && runs[0].first_logged) {
    return {{runs[0].name + "/" + runs[0].first_logged->name, &*runs[0].first_logged},
            {runs[0].name + "/" + runs[0].evaluations[0].name, runs[0].evaluations.data()}};
  }
  for (const RunData& run : runs) {
    for (const EvaluationFile& file : run.evaluations)
      all.push_back({run.evaluations.size() > 1 ? run.name + "/" + file.name : run.name, &file});
  }
  return all;
}

std::string shown_score(const EvaluationFile& file, const std::string& key) {
  const double* value = find(file, key);
  return value == nullptr ? "-" : fmt::format("{:.3f}", *value);
}

std::vector<std::vector<std::string>> score_table(const std::vector<NamedEvaluation>& evaluations) {
  std::vector<std::vector<std::string>> rows{{"score"}};
  for (const NamedEvaluation& evaluation : evaluations) rows[0].push_back(evaluation.name);
  const bool with_gain = evaluations.size() > 1;
  if (with_gain) rows[0].push_back("last - first");
  for (const ScoreKind& kind : score_kinds()) {
    std::vector<std::string> row{kind.label};
    const double* best = nullptr;
    bool all_equal = true;
    for (const NamedEvaluation& evaluation : evaluations) {
      row.push_back(shown_score(*evaluation.file, kind.key));
      const double* value = find(*evaluation.file, kind.key);
      all_equal = all_equal && (value == nullptr || best == nullptr || *value == *best);
      if (value != nullptr && kind.better != 0 &&
          (best == nullptr || kind.better * *value > kind.better * *best))
        best = value;
    }
    if (std::all_of(row.begin() + 1, row.end(),
                    [](const std::string& cell) { return cell == "-"; }))
      continue;
    for (size_t i = 0; with_gain && best != nullptr && !all_equal && i < evaluations.size(); ++i) {
      const double* value = find(*evaluations[i].file, kind.key);
      if (value != nullptr && *value == *best) row[i + 1] += "*";
    }
    if (with_gain) {
      const double *first = find(*evaluations.front().file, kind.key),
                   *last = find(*evaluations.back().file, kind.key);
      row.push_back(first && last ? fmt::format("{:+.3f}", *last - *first) : "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    text += "|";
    for (const std::string& cell : rows[i]) text += " " + cell + " |";
    text += "\n";
    if (i > 0) continue;
    text += "|";
    for (size_t column = 0; column < rows[0].size(); ++column)
      text += column == 0 ? " --- |" : " ---: |";
    text += "\n";
  }
  return text;
}

std::vector<HealthItem> judge_health(const EvaluationFile& now, const EvaluationFile* before) {
  std::vector<HealthItem> items;
  judge(items, now, "eval_rollout_parse_truncated_rate", "answers that did not end", true, 0,
        kMostTruncated, "",
        "The model runs on. Raise max_new_tokens if scenes are large; else turn on "
        "repeat_terminate and train with target_policy: rewrite, "
        "which teaches "
        "where an answer ends.");
  judge(items, now, "eval_rollout_parse_malformed_rate", "answers that are not JSON", true, 0,
        kMostMalformed, "",
        "The format is not learnt, or it is being lost: train stage 1 first, or lower "
        "learning_rate.");
  judge(
      items, now, "eval_rollout_duplicates", "predictions that repeat an earlier one", true, 0,
      kMostRepeated, "",
      "The model names the same object again and again. Train with target_policy: rewrite, which "
      "shows each object once, and check `rematch data check` for repeated objects in the truth.");
  judge(items, now, "eval_rollout_pred_per_gt", "predictions per truth", false, kLeastPerTruth,
        kMostPerTruth,
        "The model stops early. Train longer; both target policies teach the objects that an "
        "answer misses.",
        "The model sees more than there is. target_policy: rewrite teaches it to leave out what is "
        "not in the truth.");
  if (before == nullptr || before == &now) return items;
  judge_fall(items, now, *before, "eval_rollout_f1", "F1, before → after",
             "Training made it worse: lower learning_rate, and compare with fewer steps (rematch "
             "compare).");
  judge_fall(
      items, now, *before, "eval_rollout_label_accuracy", "label accuracy, before → after",
      "Labels are being forgotten: train with target_policy: rewrite, which teaches them, or "
      "mix in the truth with rollout_share < 1.");
  judge_fall(
      items, now, *before, "eval_rollout_f1_labels", "label F1, before → after",
      "Objects with the right name became fewer: look at the per-class table for what was lost.");
  return items;
}

}  // namespace rematch
