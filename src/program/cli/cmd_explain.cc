// `rematch explain KEY`: what a key, a metric or a printed word means.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/error.h"
#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/cli/command_set.h"
#include "program/config/explain.h"
#include "program/config/suggest.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

/// Text about a metric's name, or "".
std::string explain_metric(const std::string& name) {
  std::string text;
  for (const MetricRow& row : metric_table()) {
    const bool is_named = name == row.name || std::string_view(row.name).ends_with("/" + name);
    if (is_named)
      text += fmt::format("{} (metric)\n  unit {}\n  {}\n", row.name, row.unit, row.meaning);
  }
  return text;
}

/// Text about a word that tables print, or "".
std::string explain_word(const std::string& word) {
  const KnownName* row = find_known_word(word);
  if (row == nullptr) return "";
  return *row->ours != '\0' ? explain_metric(row->ours)
                            : fmt::format("{}\n  {}\n", word, row->remark);
}

/// Text about the metrics behind a score as `eval` and `compare` print it, e.g. "malformed
/// answers"; or "".
std::string explain_score(const std::string& label) {
  constexpr std::string_view kRollout = "eval_rollout_";
  for (const ScoreKind& kind : score_kinds()) {
    if (lower_case(kind.label) != lower_case(label)) continue;
    const std::string key = kind.key, base = key.substr(0, key.find("_iou50"));
    if (!base.starts_with(kRollout)) return explain_metric(key);
    return explain_metric("rollout/" + base.substr(kRollout.size())) + explain_metric(base);
  }
  return "";
}

/// Text about the names that a search finds, or "".
std::string explain_words(const std::string& query) {
  constexpr size_t kMostFound = 8;
  const std::vector<FoundName> found = search_names(query);
  std::string text;
  for (size_t i = 0; i < found.size() && i < kMostFound; ++i)
    text += fmt::format("{}{}\n  {}\n", found[i].name, found[i].is_metric ? " (metric)" : "",
                        found[i].meaning);
  if (found.size() > kMostFound)
    text += fmt::format("… {} more mention it\n", found.size() - kMostFound);
  return text;
}

int run_explain(const Strings& words) {
  const std::string name = join(words, " "), low = lower_case(name);
  const KnownName* known = find_known_key(name);
  const std::string foreign =
      known == nullptr ? "" : fmt::format("{}: {}\n", name, known_fix(*known));
  std::string text;
  for (const std::string& part :
       {explain_word(name), explain_metric(low), explain_score(name), explain_key(name), foreign,
        known == nullptr ? "" : explain_key(known->ours)})
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  if (text.empty()) text = explain_words(name);
  if (text.empty()) {
    const size_t dot = name.rfind('.');
    const Strings near =
        suggest_keys(dot == std::string::npos ? "" : name.substr(0, dot), name.substr(dot + 1));
    throw config_error({.error = "unknown key or metric",
                        .where = "rematch explain",
                        .what = printable(name),
                        .fix = near.empty() ? "try a word such as batch, epochs or mAP; "
                                              "docs/config.md and docs/metrics.md list all names"
                                            : "did you mean " + join(near, ", ") + "?"});
  }
  std::cout << wrapped(text, 2);
  return 0;
}

}  // namespace

Command add_explain_command(CLI::App& app) {
  const auto [command, explain, words] = make_command(
      app, "explain", "print what a configuration key, a metric or a word of a table means",
      run_explain, {"training.learning_rate", "target_policy", "found by 8 samples", "batch size"});
  explain
      .add_option(
          "KEY", words,
          "a key, a section or a metric, or the end of its name; a word that a table prints; else "
          "words to search for")
      ->required();
  return command;
}

}  // namespace rematch
