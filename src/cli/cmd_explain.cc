// `rematch explain KEY`, `rematch schema`, `rematch completions SHELL`: help for people and for
// their editors and shells.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "cli/command_set.h"
#include "cli/completions.h"
#include "cli/explain_search.h"
#include "config/explain.h"
#include "config/foreign.h"
#include "config/schema.h"
#include "observe/catalog.h"

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

constexpr size_t kMostFound = 8;

std::string found_text(const std::string& query, const std::vector<FoundName>& found) {
  std::string text;
  if (const ForeignKey* row = find_foreign(query))
    text = wrapped(fmt::format("{}: {}", query, foreign_fix(*row)), 2) + "\n\n";
  for (size_t i = 0; i < found.size() && i < kMostFound; ++i)
    text += fmt::format("{}{}\n{}\n", found[i].name, found[i].is_metric ? " (metric)" : "",
                        wrapped("  " + found[i].meaning, 2));
  if (found.size() > kMostFound)
    text += fmt::format("… {} more mention it\n", found.size() - kMostFound);
  return text;
}

int run_explain(const std::vector<std::string>& words) {
  const std::string name = join(words, " ");
  const std::string metric = explain_metric(name);
  std::string key;
  try {
    key = explain_key(name);
  } catch (const UserError& unknown) {
    if (metric.empty()) {
      const std::vector<FoundName> found = search_names(name);
      std::string text = found_text(name, found);
      if (!text.empty()) {
        std::cout << text;
        return 0;
      }
      Problem problem = unknown.problems().front();
      const std::vector<std::string> near = near_known_names(name);
      if (!problem.fix.starts_with("did you mean"))
        problem.fix = near.empty() ? "try a word such as batch, epochs or mAP; docs/config.md and "
                                     "docs/metrics.md list all names"
                                   : "did you mean " + join(near, ", ") + "?";
      throw UserError(ErrorKind::kConfig, problem);
    }
  }
  std::cout << wrapped(metric + (metric.empty() || key.empty() ? "" : "\n") + key, 2);
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
  CLI::App* explain =
      app.add_subcommand("explain", "print what a configuration key or a metric means");
  const auto words = std::make_shared<std::vector<std::string>>();
  explain
      ->add_option("KEY", *words,
                   "a key, a section or a metric, or the end of its name; else words to search for")
      ->required();
  explain->footer(
      "Examples:\n  rematch explain training.learning_rate\n  rematch explain target_policy\n"
      "  rematch explain batch size");
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
