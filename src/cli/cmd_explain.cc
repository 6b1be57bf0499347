// `rematch explain KEY`, `rematch schema`, `rematch completions SHELL`: help for people and for
// their editors and shells.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/command_set.h"
#include "cli/completions.h"
#include "config/explain.h"
#include "observe/catalog.h"

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

int run_explain(const std::string& name) {
  const std::string metric = explain_metric(name);
  std::string key;
  try {
    key = explain_key(name);
  } catch (const UserError&) {
    if (metric.empty()) throw;
  }
  std::cout << metric << (metric.empty() || key.empty() ? "" : "\n") << key;
  return 0;
}

}  // namespace

std::vector<Command> add_explain_commands(CLI::App& app) {
  CLI::App* explain =
      app.add_subcommand("explain", "print what a configuration key or a metric means");
  const auto name = std::make_shared<std::string>();
  explain->add_option("KEY", *name, "a key, a section or a metric, or the end of its name")
      ->required();
  explain->footer(
      "Examples:\n  rematch explain training.learning_rate\n  rematch explain target_policy");
  CLI::App* schema =
      app.add_subcommand("schema", "print a JSON Schema of configurations, for editors");
  schema->footer(
      "Examples:\n  rematch schema > rematch.schema.json\n"
      "  rematch schema | python3 -m json.tool\nIn VS Code, the first line of a YAML: # "
      "yaml-language-server: $schema=rematch.schema.json");
  CLI::App* completions = app.add_subcommand("completions", "print completions for a shell");
  const auto shell = std::make_shared<std::string>();
  completions->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completions->footer(
      "Examples:\n  source <(rematch completions bash)\n  rematch completions fish > "
      "~/.config/fish/completions/rematch.fish");
  return {{explain, [name] { return run_explain(*name); }},
          {schema,
           [] {
             std::cout << config_json_schema();
             return 0;
           }},
          {completions, [&app, shell] {
             std::cout << completions_for(*shell, app);
             return 0;
           }}};
}

}  // namespace rematch
