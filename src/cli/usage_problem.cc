#include "cli/usage_problem.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <set>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "cli/completions.h"
#include "cli/meant_settings.h"

namespace rematch {
namespace {

/// Commands that the arguments name, outermost first: {app}, {app, train} or {app, data, check}.
std::vector<const CLI::App*> named_commands(const CLI::App& app,
                                            const std::vector<std::string>& arguments) {
  std::vector<const CLI::App*> path{&app};
  for (size_t i = 1; i < arguments.size(); ++i) {
    const auto named = path.back()->get_subcommands(
        [&](const CLI::App* inner) { return inner->check_name(arguments[i]); });
    if (named.empty()) break;
    path.push_back(named.front());
  }
  return path;
}

/// The arguments without a name, as the usage line shows them: "CONFIG", "MODEL IMAGE".
std::string positionals(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && option->get_required())
      names.push_back(option->get_name(/*positional=*/true));
  }
  return join(names, " ");
}

/// Our name for an option of another program; "" if there is none.
std::string meant_option(const std::string& command, const std::string& typed) {
  static const std::vector<std::pair<std::string, std::string>> kOptions = {
      {"predict --conf", "--min-score NUMBER"}, {"predict --threshold", "--min-score NUMBER"},
      {"predict --save", "--draw DIR"},         {"predict --show", "--draw DIR"},
      {"predict --visualize", "--draw DIR"},    {"predict --project", "--draw DIR"},
      {"split --ratio", "--val SHARE"},         {"split --test-size", "--val SHARE"}};
  const std::string key = command + " " + typed.substr(0, typed.find('='));
  for (const auto& [name, answer] : kOptions) {
    if (name == key) return answer;
  }
  return "";
}

/// The advice for arguments that a command does not take; "" when nothing is known.
std::string advice_for(const std::string& name, const CLI::App& command,
                       const std::vector<std::string>& unexpected,
                       const std::vector<std::string>& arguments) {
  static const std::set<std::string> kInputs = {
      "--model",      "--config", "--cfg",    "--data",    "--dataset",
      "--source",     "--input",  "--images", "--weights", "--model_name_or_path",
      "--train_jsonl"};
  const std::string& first = unexpected.front();
  for (size_t i = 2; i < arguments.size(); ++i) {
    if (arguments[i] != first) continue;
    if (arguments[i - 1] == "--resume")
      return "did you mean --set training.resume_from_checkpoint=" + first + "? --resume alone " +
             "continues from the newest checkpoint";
    const bool follows_key = arguments[i - 1].find('=') == std::string::npos;
    const bool is_spaced = first == "=" && i + 1 < arguments.size();  // key = value
    if (arguments[i - 2] == "--set" && follows_key)
      return fmt::format("did you mean --set {}={}?", arguments[i - 1],
                         is_spaced ? arguments[i + 1] : first);
  }
  const bool has_value = unexpected.size() > 1 && !unexpected[1].starts_with("--");
  if (kInputs.contains(first) && !has_value)
    return fmt::format("give {0} without option names: `{1} {0}`{2}", positionals(command), name,
                       command.get_option_no_throw("CONFIG") == nullptr
                           ? ""
                           : "; `rematch init MODEL JSONL` writes a CONFIG");
  if (const std::string settings = meant_settings(command, unexpected); !settings.empty())
    return "did you mean " + settings + "?";
  for (const std::string& typed : unexpected) {
    if (const std::string option = meant_option(command.get_name(), typed); !option.empty())
      return "did you mean " + option + "?";
  }
  if (command.get_name() == "init" && first.ends_with(".jsonl"))
    return "did you mean --val " + first + "?";
  if (command.get_option_no_throw("CONFIG") != nullptr && first.ends_with(".jsonl"))
    return "write a CONFIG first: rematch init MODEL " + shell_word(first);
  return "";
}

}  // namespace

Problem usage_problem(const CLI::App& app, const std::string& reason, bool has_extras,
                      const std::vector<std::string>& arguments) {
  const std::vector<const CLI::App*> path = named_commands(app, arguments);
  const CLI::App& command = *path.back();
  std::string name = app.get_name();
  for (size_t i = 1; i < path.size(); ++i) name += " " + path[i]->get_name();
  Problem problem{.error = "the command line is invalid",
                  .where = name + " …",
                  .what = reason,
                  .fix = fmt::format("see `{} --help`: it shows the arguments and examples", name)};

  const bool needs_command = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
  const std::string typed = arguments.size() > path.size() ? arguments[path.size()] : "";
  if (needs_command) {
    problem.what = typed.empty() ? "a subcommand is required"
                                 : fmt::format("unknown command `{}`", printable(typed));
    std::string meant = typed.empty() ? "" : meant_command(command, typed);
    if (typed == "help")
      meant = arguments.back() == typed ? "--help" : arguments.back() + " --help";
    problem.fix =
        (meant.empty() ? "" : fmt::format("did you mean `{} {}`? ", name, printable(meant))) +
        fmt::format("see `{0} --help` and `{0} COMMAND --help`", name);
    return problem;
  }
  const std::vector<std::string> unexpected =
      has_extras ? unexpected_arguments(command, arguments) : std::vector<std::string>{};
  if (unexpected.empty()) return problem;
  problem.what = "not expected: " + printable(join(unexpected, " "));
  if (const std::string advice = advice_for(name, command, unexpected, arguments); !advice.empty())
    problem.fix = printable(advice);
  else if (command.get_option_no_throw("--set") != nullptr)
    problem.fix = fmt::format(
        "see `{} --help`; hyper-parameters live in the YAML, or use --set KEY=VALUE", name);
  return problem;
}

}  // namespace rematch
