#include "tools/report/score_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/evaluate/eval_set.h"

namespace rematch {
namespace {

/// The set of an evaluation, "32 records of val.jsonl".
std::string set_text(const EvaluationFile& file) {
  if (file.eval_set.empty()) return "unknown";
  return shown_eval_set(file.eval_set) +
         (file.records.empty() ? "" : " of " + printable(file.records));
}

/// A score as it is printed: what looks equal is equal.
std::optional<double> shown_value(const EvaluationFile& file, const std::string& key) {
  const std::optional<double> value = file.score(key);
  return value ? std::optional(std::round(*value * 1000)) : std::nullopt;
}

/// "+0.050"; "0.000" for what rounds to nothing.
std::string gain_text(double gain) {
  const std::string text = fmt::format("{:+.3f}", gain);
  return text.substr(1) == "0.000" ? text.substr(1) : text;
}

}  // namespace

const std::vector<ScoreKind>& score_kinds() {
  static const std::vector<ScoreKind> kKinds = {
      {"eval_rollout_f1_iou50", "F1 @ IoU 0.5", 1},
      {"eval_rollout_f1_labels_iou50", "label F1 @ IoU 0.5", 1},
      {"eval_rollout_f1", "gate F1", 1},
      {"eval_rollout_f1_labels", "gate label F1", 1},
      {"eval_rollout_precision", "gate precision", 1},
      {"eval_rollout_recall", "gate recall", 1},
      {"eval_rollout_label_accuracy", "label accuracy of matches", 1},
      {"eval_rollout_matched_maskiou_mean", "mean IoU of matches", 1},
      {"coco_ap", "COCO AP", 1},
      {"coco_ap50", "COCO AP50", 1},
      {"coco_ar_100", "COCO AR", 1},
      {"eval_rollout_duplicates", "repeated predictions", -1},
      {"eval_rollout_pred_per_gt", "predictions per truth", 0},
      {"eval_rollout_absent_answered", "absent classes answered", -1},
      {"eval_rollout_empty_answered", "empty pictures answered", -1},
      {"eval_rollout_parse_truncated_rate", "truncated answers", -1},
      {"eval_rollout_parse_malformed_rate", "malformed answers", -1},
      {"eval_loss", "loss on the truth", -1}};
  return kKinds;
}

std::vector<NamedEvaluation> list_evaluations(const std::vector<RunData>& runs) {
  std::vector<NamedEvaluation> all;
  for (const RunData& run : runs) {
    const EvaluationFile* first =
        runs.size() == 1 && run.first_logged ? &*run.first_logged : nullptr;
    const bool is_long = first || run.evaluations.size() > 1;
    for (const EvaluationFile& file : run.evaluations) {
      if (first && file.is_of_run())
        all.push_back({run.name + "/" + first->name, std::exchange(first, nullptr)});
      all.push_back({is_long || (!run.log.empty() && !file.is_of_run()) ? run.name + "/" + file.name
                                                                        : run.name,
                     &file});
    }
  }
  return all;
}

bool over_same_set(const EvaluationFile& a, const EvaluationFile& b) {
  return a.eval_set == b.eval_set;
}

std::string different_sets(const std::vector<NamedEvaluation>& evaluations) {
  const auto is_other = [&](const NamedEvaluation& evaluation) {
    return !over_same_set(*evaluations.front().file, *evaluation.file);
  };
  if (std::ranges::none_of(evaluations, is_other)) return "";
  const NamedEvaluation& last = evaluations.back();
  Strings sets, differences;
  for (const NamedEvaluation& evaluation : evaluations) {
    const EvaluationFile& file = *evaluation.file;
    sets.push_back(evaluation.name + ": " + set_text(file));
    for (const std::string& each : eval_set_differences(last.file->eval_set, file.eval_set)) {
      if (!contains(differences, each)) differences.push_back(each);
    }
  }
  const NamedEvaluation* const baseline = find_baseline(evaluations);
  return fmt::format("these evaluations are over different sets{}, so {}: {}",
                     differences.empty() ? "" : " (other " + join(differences, ", ") + ")",
                     baseline == nullptr
                         ? "nothing is judged between them"
                         : fmt::format("only those over the set of {} are compared", last.name),
                     join(sets, "; "));
}

const NamedEvaluation* find_baseline(const std::vector<NamedEvaluation>& evaluations) {
  for (size_t i = 0; i + 1 < evaluations.size(); ++i) {
    if (over_same_set(*evaluations[i].file, *evaluations.back().file)) return &evaluations[i];
  }
  return nullptr;
}

std::string shown_score(const EvaluationFile& file, const std::string& key) {
  const std::optional<double> value = file.score(key);
  return !value ? "-" : fmt::format("{:.3f}", *value);
}

std::vector<Strings> score_table(const std::vector<NamedEvaluation>& evaluations) {
  std::vector<Strings> rows{{"score"}};
  for (const NamedEvaluation& evaluation : evaluations) rows[0].push_back(evaluation.name);
  const NamedEvaluation* const baseline = find_baseline(evaluations);
  if (baseline != nullptr) {
    rows[0].push_back(baseline == &evaluations.front() ? "last - first"
                                                       : "last - " + baseline->name);
  }
  const auto is_compared = [&](const NamedEvaluation& evaluation) {
    return baseline != nullptr && over_same_set(*evaluation.file, *baseline->file);
  };
  for (const ScoreKind& kind : score_kinds()) {
    Strings row{kind.label};
    std::optional<double> best;
    bool all_equal = true;
    for (const NamedEvaluation& evaluation : evaluations) {
      row.push_back(shown_score(*evaluation.file, kind.key));
      if (!is_compared(evaluation)) continue;
      const std::optional<double> value = shown_value(*evaluation.file, kind.key);
      all_equal = all_equal && (!value || !best || *value == *best);
      if (value && kind.better != 0 && (!best || kind.better * *value > kind.better * *best))
        best = value;
    }
    if (std::all_of(row.begin() + 1, row.end(),
                    [](const std::string& cell) { return cell == "-"; }))
      continue;
    for (size_t i = 0; best && !all_equal && i < evaluations.size(); ++i) {
      const NamedEvaluation& each = evaluations[i];
      if (is_compared(each) && shown_value(*each.file, kind.key) == best) row[i + 1] += "*";
    }
    if (baseline != nullptr) {
      const std::optional<double> first = baseline->file->score(kind.key),
                                  last = evaluations.back().file->score(kind.key);
      row.push_back(first && last ? gain_text(*last - *first) : "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string markdown_table(const std::vector<Strings>& rows) {
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

std::optional<NameCollapse> collapse_in(const EvaluationFile& evaluation) {
  NameCounts names;
  for (const ScoreRow& row : evaluation.per_class) {
    const auto count = [&](const char* key) { return static_cast<int64_t>(row.value(key)); };
    names[row.name] = {count("truths"), count("predictions")};
  }
  return find_collapse(names);
}

}  // namespace rematch
