#include "learn/train/evaluation_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/observe/columns.h"

namespace rematch {
namespace {

constexpr std::pair<const char*, const char*> kScores[] = {
    {"eval_rollout_f1_iou50", "F1@.5"},
    {"eval_rollout_f1_labels_iou50", "label F1@.5"},
    {"eval_rollout_f1", "gate F1"},
    {"eval_rollout_precision", "gate P"},
    {"eval_rollout_recall", "gate R"},
    {"eval_rollout_absent_answered", "absent"},
    {"eval_rollout_parse_malformed_rate", "malformed"},
    {"eval_loss", "loss"},
    {"eval_token_acc", "token acc"}};

/// True for a column of the table. With the scores of answers, the accuracy of tokens would make
/// it wider than 80 columns.
bool is_shown(const char* name, const MetricValues& now) {
  const bool answers = find_value(now, "eval_rollout_f1").has_value();
  return find_value(now, name) && !(answers && std::string_view(name) == "eval_token_acc");
}

bool is_evaluation(const LogEntry& entry) {
  return std::ranges::any_of(kScores, [&](const auto& score) {
    return find_value(entry.values, score.first).has_value();
  });
}

template <typename Values>
Strings score_row(int64_t step, const Values& values, const MetricValues& columns) {
  Strings row{fmt::format("step {}", step)};
  for (const auto& [name, text] : kScores) {
    if (!is_shown(name, columns)) continue;
    const std::optional<double> value = find_value(values, name);
    row.push_back(value ? fmt::format("{:.3f}", *value) : "–");
  }
  return row;
}

}  // namespace

std::string score_name(const std::string& metric) {
  for (const auto& [name, text] : kScores) {
    if (metric == name) return text;
  }
  return metric;
}

std::string evaluation_table(const std::vector<LogEntry>& history, int64_t step,
                             const MetricValues& now, const std::string& eval_set) {
  std::vector<Strings> rows{{""}};
  for (const auto& [name, text] : kScores) {
    if (is_shown(name, now)) rows.front().push_back(text);
  }
  const auto first = std::ranges::find_if(history, [&](const LogEntry& entry) {
    return is_evaluation(entry) && entry.eval_set == eval_set;
  });
  if (first != history.end()) rows.push_back(score_row(first->step, first->values, now));
  rows.push_back(score_row(step, now, now));
  return fmt::format("evaluation after step {}\n{}", step, table_text(rows));
}

}  // namespace rematch
