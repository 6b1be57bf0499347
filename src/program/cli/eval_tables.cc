#include "program/cli/eval_tables.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/observe/sinks.h"
#include "base/terminal_text.h"
#include "learn/evaluate/answer_counts.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

constexpr size_t kShownRows = 20;
constexpr size_t kWidestName = 17;

std::string shown(const std::string& name, double value) {
  const bool is_count = value == static_cast<double>(static_cast<int64_t>(value)) &&
                        name.find("_rate") == std::string::npos && value > 1;
  return is_count ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{:.4f}", value);
}

/// Rows of `per_class` or `per_count`, the largest classes only.
/// @param first  heading of the first column
std::vector<Strings> breakdown_table(const std::string& first, const Json& rows) {
  std::vector<Strings> table{
      {first, "images", "truths", "predictions", "recall", "label P", "label R", "label F1"}};
  for (const Json& row : rows) {
    if (table.size() > kShownRows) break;
    Strings cells{shown_start(row["name"].get<std::string>(), kWidestName)};
    for (const char* count : {"images", "truths", "predictions"})
      cells.push_back(fmt::format("{}", row[count].get<int64_t>()));
    for (const char* score : {"recall", "precision_labels", "recall_labels", "f1_labels"})
      cells.push_back(fmt::format("{:.3f}", row[score].get<double>()));
    table.push_back(std::move(cells));
  }
  return table;
}

using ScoreValues = std::vector<std::pair<std::string, double>>;

/// The rows of `rematch compare`.
std::vector<Strings> main_table(const ScoreValues& values) {
  const EvaluationFile evaluation{.scores = {values.begin(), values.end()}};
  return score_table({{"value", &evaluation}});
}

void print_tables(const ScoreValues& values, const Json& result, bool all_scores,
                  Terminal& terminal) {
  const std::vector<Strings> main = main_table(values);
  if (!all_scores && main.size() > 1) {
    terminal.table(main);
    terminal.say(fmt::format("`--all` prints all {}{}", counted(std::ssize(values), "score"),
                             result.contains("per_class") ? ", classes and object counts" : ""));
    return;
  }
  std::vector<Strings> rows{{"metric", "value"}};
  for (const auto& [name, value] : values) rows.push_back({name, shown(name, value)});
  terminal.table(rows);
  if (!result.contains("per_class")) return;
  terminal.table(breakdown_table("class", result["per_class"]));
  terminal.table(breakdown_table("objects", result["per_count"]));
}

}  // namespace

void print_scores(const ScoreValues& values, const Json& result, bool all_scores,
                  Terminal& terminal) {
  print_tables(values, result, all_scores, terminal);
  const std::string finding =
      evaluation_counts([&](const char* name) { return find_value(values, name); },
                        result.value("num_samples", int64_t{0}))
          .finding();
  if (finding.empty()) return;
  terminal.say(wrapped("health: " + finding, 2));
  terminal.say("  `rematch rollout` shows them; custom.answer_format says how they are read");
}

}  // namespace rematch
