#include "program/cli/usage_problem.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/suggest.h"

namespace rematch {
namespace {

/// Commands that the arguments name, outermost first: {app}, {app, train} or {app, data, check}.
std::vector<const CLI::App*> named_commands(const CLI::App& app, const Strings& arguments) {
  std::vector<const CLI::App*> path{&app};
  for (size_t i = 1; i < arguments.size(); ++i) {
    const auto named = path.back()->get_subcommands(
        [&](const CLI::App* inner) { return inner->check_name(arguments[i]); });
    if (named.empty()) break;
    path.push_back(named.front());
  }
  return path;
}

Strings inner_commands(const CLI::App& command) {
  Strings names;
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(inner->get_name());
  return names;
}

/// The arguments without a name, as the usage line shows them: "CONFIG", "MODEL IMAGE".
std::string positionals(const CLI::App& command) {
  Strings names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && option->get_required())
      names.push_back(option->get_name(/*positional=*/true));
  }
  return join(names, " ");
}

/// The command's own option that is nearest to a typed one, e.g. "--resume" for "--resum"; "" if
/// none is near or the name is a key of the configuration.
std::string near_option(const CLI::App& command, const std::string& typed) {
  constexpr size_t kShortest = 5;  // every shorter one is near to some option
  const std::string name = typed.substr(0, typed.find('='));
  if (!name.starts_with("--") || name.size() < kShortest || !find_counterpart(name).empty())
    return "";
  Strings names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back(known);
  }
  const Strings near = near_names(name.substr(2), names, 1);
  return near.empty() ? "" : "--" + near.front();
}

/// The advice for arguments that a command does not take; "" if none is known.
/// @param name  of the command, with the program's
std::string advice_for(const std::string& name, const CLI::App& command,
                       const Strings& unexpected) {
  const std::string& first = unexpected.front();
  if (first.starts_with("--set") && command.get_option_no_throw("--set") == nullptr)
    return "leave --set out here; `rematch check`, `train` and `eval` take it";
  const bool has_config = command.get_option_no_throw("CONFIG") != nullptr;
  std::string meant = near_option(command, first);
  if (const KnownName* row = find_known(NameKind::kOption, first.substr(0, first.find('=')))) {
    const bool has_value = unexpected.size() > 1 && !unexpected[1].starts_with("--");
    if (*row->ours == '\0' && !has_value)
      return fmt::format("{}: `{} {}`{}", row->remark, name, positionals(command),
                         has_config ? "; `rematch init MODEL JSONL` writes a CONFIG" : "");
    if (*row->ours != '\0' && command.get_option_no_throw(row->ours) != nullptr) meant = row->ours;
  }
  if (meant.empty() && command.get_option_no_throw("--set") != nullptr) {
    Strings settings = unexpected;
    // A command that only asks has no batch of training.
    if (command.get_option_no_throw("JSONL") != nullptr && first.starts_with("--batch"))
      settings.front().replace(0, first.find('='), "--eval_batch_size");
    meant = guess_settings(settings);
  }
  if (!meant.empty()) return "did you mean " + meant + "?";
  if (const KnownName* row = find_known_key(first.substr(0, first.find('='))))
    return known_fix(*row);
  return has_config && first.ends_with(".jsonl")
             ? "write a CONFIG first: rematch init MODEL " + shell_word(first)
             : "";
}

std::string nearest_command(const std::string& typed, const CLI::App& command) {
  const Strings near = typed.empty() ? Strings{} : near_names(typed, inner_commands(command), 1);
  return near.empty() || near.front() == typed ? "" : near.front();
}

/// The fix for a subcommand that is missing or unknown.
std::string command_fix(const std::string& name, const CLI::App& command, const std::string& typed,
                        const std::string& last) {
  const bool has_known = command.get_parent() == nullptr || command.get_name() == "stage";
  const KnownName* known = has_known ? find_known(NameKind::kCommand, typed) : nullptr;
  if (known != nullptr && *known->remark != '\0') return known->remark;
  std::string meant = known != nullptr ? known->ours : nearest_command(typed, command);
  if (typed == "help") meant = last == typed ? "--help" : last + " --help";
  return (meant.empty() ? "" : fmt::format("did you mean `{} {}`? ", name, printable(meant))) +
         fmt::format("see `{0} --help` and `{0} COMMAND --help`", name);
}

}  // namespace

Problem usage_problem(const CLI::App& app, const std::string& reason, bool has_extras,
                      const Strings& arguments) {
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
  const Strings unexpected = has_extras ? command.remaining() : Strings{};
  if (unexpected.empty()) return problem;
  problem.what = "not expected: " + printable(join(unexpected, " "));
  if (const std::string advice = advice_for(name, command, unexpected); !advice.empty())
    problem.fix = printable(advice);
  else if (command.get_option_no_throw("--set") != nullptr)
    problem.fix = fmt::format(
        "see `{} --help`; hyper-parameters live in the YAML, or use --set KEY=VALUE", name);
  return problem;
}

}  // namespace rematch
