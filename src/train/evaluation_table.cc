#include "train/evaluation_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "observe/columns.h"

namespace rematch {
namespace {

constexpr std::pair<const char*, const char*> kScores[] = {{"eval_rollout_f1", "F1"},
                                                           {"eval_rollout_f1_labels", "label F1"},
                                                           {"eval_rollout_precision", "precision"},
                                                           {"eval_rollout_recall", "recall"},
                                                           {"eval_loss", "loss"},
                                                           {"eval_token_acc", "token acc"}};

bool is_evaluation(const LogEntry& entry) {
  return std::any_of(std::begin(kScores), std::end(kScores), [&](const auto& score) {
    return find_value(entry.values, score.first).has_value();
  });
}

template <typename Values>
std::vector<std::string> score_row(int64_t step, const Values& values,
                                   const MetricValues& columns) {
  std::vector<std::string> row{fmt::format("step {}", step)};
  for (const auto& [name, text] : kScores) {
    if (!find_value(columns, name)) continue;
    const std::optional<double> value = find_value(values, name);
    row.push_back(value ? fmt::format("{:.3f}", *value) : "–");
  }
  return row;
}

}  // namespace

std::string evaluation_table(const std::vector<LogEntry>& history, int64_t step,
                             const MetricValues& now, const std::string& eval_set) {
  std::vector<std::vector<std::string>> rows{{""}};
  for (const auto& [name, text] : kScores) {
    if (find_value(now, name)) rows.front().push_back(text);
  }
  const auto first = std::find_if(history.begin(), history.end(), [&](const LogEntry& entry) {
    return is_evaluation(entry) && entry.eval_set == eval_set;
  });
  if (first != history.end()) rows.push_back(score_row(first->step, first->values, now));
  rows.push_back(score_row(step, now, now));
  return fmt::format("evaluation after step {}\n{}", step, table_text(rows));
}

}  // namespace rematch
