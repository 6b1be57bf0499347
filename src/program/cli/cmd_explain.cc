// `rematch explain KEY`, `rematch schema`, `rematch completions SHELL`: help for people and for
// their editors and shells.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/cli/command_set.h"
#include "program/cli/completions.h"
#include "program/cli/printed_words.h"
#include "program/config/explain.h"
#include "program/config/schema.h"
#include "program/config/suggest.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

/// The keys that `--set` takes.
std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured) names.push_back(spec.path);
  }
  return names;
}

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

/// The metrics behind a score as `eval` and `compare` print it, e.g. "malformed answers".
std::vector<std::string> score_metrics(const std::string& label) {
  constexpr std::string_view kRollout = "eval_rollout_";
  for (const ScoreKind& kind : score_kinds()) {
    if (lower_case(kind.label) != lower_case(label)) continue;
    const std::string key = kind.key, base = key.substr(0, key.find("_iou50"));
    if (!base.starts_with(kRollout)) return {key};
    return {"rollout/" + base.substr(kRollout.size()), base};
  }
  return {};
}

/// Text about the names that a search finds, or "".
std::string explain_words(const std::string& query) {
  constexpr size_t kMostFound = 8;
  const std::vector<FoundName> found = search_names(query, score_metrics(query));
  std::string text;
  if (const KnownName* row = find_foreign(query))
    text = fmt::format("{}: {}\n\n", query, foreign_fix(*row));
  for (size_t i = 0; i < found.size() && i < kMostFound; ++i)
    text += fmt::format("{}{}\n  {}\n", found[i].name, found[i].is_metric ? " (metric)" : "",
                        found[i].meaning);
  if (found.size() > kMostFound)
    text += fmt::format("… {} more mention it\n", found.size() - kMostFound);
  return text;
}

int run_explain(const std::vector<std::string>& words) {
  const std::string name = join(words, " ");
  const std::string printed = explain_printed_word(name), low = lower_case(name);
  std::string text;
  for (const std::string& part : {printed, explain_metric(low), explain_key(name)})
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  const KnownName* foreign = printed.empty() ? nullptr : find_foreign(name);
  if (foreign != nullptr) text += fmt::format("\n{}: {}\n", name, foreign_fix(*foreign));
  if (text.empty()) text = explain_words(name);
  if (text.empty()) {
    const std::vector<std::string> near = near_known_names(name);
    throw UserError(ErrorKind::kConfig,
                    {.error = "unknown key or metric",
                     .where = "rematch explain",
                     .what = printable(name),
                     .fix = near.empty() ? "try a word such as batch, epochs or mAP; "
                                           "docs/config.md and docs/metrics.md list all names"
                                         : "did you mean " + join(near, ", ") + "?"});
  }
  std::cout << wrapped(text, 2);
  return 0;
}

/// @throws UserError (config) for a shell without completions
int run_completions(const std::string& shell, const CLI::App& app) {
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  if (std::find(shells.begin(), shells.end(), shell) == shells.end())
    throw UserError(ErrorKind::kConfig, {.error = "there are no completions for this shell",
                                         .where = "rematch completions",
                                         .what = printable(shell),
                                         .fix = "choose one of " + join(shells, ", ")});
  std::cout << completions_for(shell, app, setting_names());
  return 0;
}

}  // namespace

std::vector<Command> add_explain_commands(CLI::App& app) {
  CLI::App* explain = app.add_subcommand(
      "explain", "print what a configuration key, a metric or a word of a table means");
  const auto words = std::make_shared<std::vector<std::string>>();
  explain
      ->add_option(
          "KEY", *words,
          "a key, a section or a metric, or the end of its name; a word that a table prints; else "
          "words to search for")
      ->required();
  explain->footer(
      "Examples:\n  rematch explain training.learning_rate\n  rematch explain target_policy\n"
      "  rematch explain found by 8 samples\n  rematch explain batch size");
  CLI::App* schema =
      app.add_subcommand("schema", "print a JSON Schema of configurations, for editors");
  schema->footer(
      "Examples:\n  rematch schema > rematch.schema.json\n"
      "  rematch schema | python3 -m json.tool\nIn VS Code, the first line of a YAML: # "
      "yaml-language-server: $schema=rematch.schema.json");
  CLI::App* completions = app.add_subcommand("completions", "print completions for a shell");
  const auto shell = std::make_shared<std::string>();
  completions->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  completions->footer(
      "Examples:\n  source <(rematch completions bash)\n  rematch completions fish > "
      "~/.config/fish/completions/rematch.fish");
  return {{explain, [words] { return run_explain(*words); }},
          {schema,
           [] {
             std::cout << config_json_schema();
             return 0;
           }},
          {completions, [&app, shell] { return run_completions(*shell, app); }}};
}

}  // namespace rematch
