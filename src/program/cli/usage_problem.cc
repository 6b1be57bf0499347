#include "program/cli/usage_problem.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/suggest.h"

namespace rematch {
namespace {

using Words = std::vector<std::string>;

/// Commands that the arguments name, outermost first: {app}, {app, train} or {app, data, check}.
std::vector<const CLI::App*> named_commands(const CLI::App& app, const Words& arguments) {
  std::vector<const CLI::App*> path{&app};
  for (size_t i = 1; i < arguments.size(); ++i) {
    const auto named = path.back()->get_subcommands(
        [&](const CLI::App* inner) { return inner->check_name(arguments[i]); });
    if (named.empty()) break;
    path.push_back(named.front());
  }
  return path;
}

Words inner_commands(const CLI::App& command) {
  Words names;
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(inner->get_name());
  return names;
}

/// The arguments without a name, as the usage line shows them: "CONFIG", "MODEL IMAGE".
std::string positionals(const CLI::App& command) {
  Words names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && option->get_required())
      names.push_back(option->get_name(/*positional=*/true));
  }
  return join(names, " ");
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

/// The arguments that a command does not know, in their order, values of unknown options included.
Words unexpected_arguments(const CLI::App& command, const Words& arguments) {
  Words left = command.remaining(), ordered;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto at = std::find(left.begin(), left.end(), arguments[i]);
    if (at == left.end()) continue;
    left.erase(at);
    ordered.push_back(arguments[i]);
    // A command with room for another input has taken the option's value for it.
    const bool takes_next = arguments[i].starts_with("--") && i + 1 < arguments.size() &&
                            std::find(left.begin(), left.end(), arguments[i + 1]) == left.end();
    if (takes_next && is_number(arguments[i + 1])) ordered.push_back(arguments[++i]);
  }
  return ordered;
}

/// The advice for an argument that follows `--resume` or `--set KEY`; "" for others.
std::string advice_by_place(const std::string& argument, const Words& arguments) {
  for (size_t i = 2; i < arguments.size(); ++i) {
    if (arguments[i] != argument) continue;
    if (arguments[i - 1] == "--resume")
      return "did you mean --set training.resume_from_checkpoint=" + argument +
             "? --resume alone continues from the newest checkpoint";
    const bool is_spaced = argument == "=" && i + 1 < arguments.size();  // key = value
    if (arguments[i - 2] == "--set" && arguments[i - 1].find('=') == std::string::npos)
      return fmt::format("did you mean --set {}={}?", arguments[i - 1],
                         is_spaced ? arguments[i + 1] : argument);
  }
  return "";
}

/// The command's own option that a mistyped or shortened one means, e.g. "--resume" for "--resum";
/// "" if none is near or the name is a key of the configuration.
std::string near_option(const CLI::App& command, const std::string& typed) {
  const std::string name = typed.substr(0, typed.find('='));
  if (!name.starts_with("--") || name.size() < 5 || !find_counterpart(name).empty()) return "";
  Words names, longer;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      names.push_back(known);
      if (("--" + known).starts_with(name)) longer.push_back(known);
    }
  }
  if (longer.size() != 1) longer = near_names(name.substr(2), names, 1);
  return longer.empty() ? "" : "--" + longer.front();
}

/// The loop over the files that were given to a command for one JSONL; "" for other arguments.
std::string loop_over_files(const std::string& name, const CLI::App& command,
                            const Words& unexpected) {
  const CLI::Option* file = command.get_option_no_throw("JSONL");
  const bool are_files =
      std::all_of(unexpected.begin(), unexpected.end(), [](const std::string& argument) {
        return argument.ends_with(".jsonl") && !argument.starts_with("-");
      });
  const bool is_for_one = name.ends_with(" data check") || name.ends_with(" data split");
  if (file == nullptr || file->empty() || !are_files || !is_for_one) return "";
  std::string files = shell_word(file->as<std::string>());
  for (const std::string& argument : unexpected) files += " " + shell_word(argument);
  return fmt::format("give one file at a time: for f in {}; do {} \"$f\"; done", files, name);
}

/// The advice for arguments that a command does not take; "" if none is known.
/// @param name  of the command, with the program's
std::string advice_for(const std::string& name, const CLI::App& command, const Words& unexpected,
                       const Words& arguments) {
  const std::string& first = unexpected.front();
  const bool has_config = command.get_option_no_throw("CONFIG") != nullptr;
  if (std::string advice = advice_by_place(first, arguments); !advice.empty()) return advice;
  if (std::string loop = loop_over_files(name, command, unexpected); !loop.empty()) return loop;
  const bool has_value = unexpected.size() > 1 && !unexpected[1].starts_with("--");
  if (is_input_option(first) && !has_value)
    return fmt::format("give {0} without option names: `{1} {0}`{2}", positionals(command), name,
                       has_config ? "; `rematch init MODEL JSONL` writes a CONFIG" : "");
  std::string meant = guess_option(command.get_name(), first);
  if (meant.empty()) meant = near_option(command, first);
  if (meant.empty() && command.get_option_no_throw("--set") != nullptr)
    meant = guess_settings(unexpected);
  for (size_t i = 1; i < unexpected.size() && meant.empty(); ++i)
    meant = guess_option(command.get_name(), unexpected[i]);
  if (meant.empty() && command.get_name() == "init" && first.ends_with(".jsonl"))
    meant = "--val " + first;
  if (!meant.empty()) return "did you mean " + meant + "?";
  return has_config && first.ends_with(".jsonl")
             ? "write a CONFIG first: rematch init MODEL " + shell_word(first)
             : "";
}

/// The fix for a subcommand that is missing or unknown.
std::string command_fix(const std::string& name, const CLI::App& command, const std::string& typed,
                        const std::string& last) {
  std::string meant = typed.empty() ? ""
                                    : guess_command(typed, inner_commands(command),
                                                    command.get_parent() == nullptr);
  if (const std::string advice = command_advice(typed);
      command.get_parent() == nullptr && !advice.empty())
    return advice;
  if (typed == "help") meant = last == typed ? "--help" : last + " --help";
  return (meant.empty() ? "" : fmt::format("did you mean `{} {}`? ", name, printable(meant))) +
         fmt::format("see `{0} --help` and `{0} COMMAND --help`", name);
}

}  // namespace

Problem usage_problem(const CLI::App& app, const std::string& reason, bool has_extras,
                      const Words& arguments) {
  const std::vector<const CLI::App*> path = named_commands(app, arguments);
  const CLI::App& command = *path.back();
  std::string name = app.get_name();
  for (size_t i = 1; i < path.size(); ++i) name += " " + path[i]->get_name();
  Problem problem{.error = "the command line is invalid",
                  .where = name + " …",
                  .what = reason,
                  .fix = fmt::format("see `{} --help`: it shows the arguments and examples", name)};
  if (!inner_commands(command).empty()) {
    const std::string typed = arguments.size() > path.size() ? arguments[path.size()] : "";
    problem.what = typed.empty() ? "a subcommand is required"
                                 : fmt::format("unknown command `{}`", printable(typed));
    problem.fix = command_fix(name, command, typed, arguments.back());
    return problem;
  }
  const Words unexpected = has_extras ? unexpected_arguments(command, arguments) : Words{};
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
