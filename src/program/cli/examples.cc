#include <CLI/CLI.hpp>

#include "program/cli/command_set.h"

namespace rematch {

void add_examples(CLI::App& command, const Strings& arguments, const std::string& before) {
  std::string name, text = before;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent())
    name = " " + app->get_name() + name;
  text += text.empty() ? "Examples:" : "\nExamples:";  // in place of the parent's footer
  for (const std::string& each : arguments) text += "\n " + name + (each.empty() ? "" : " ") + each;
  command.footer(text);
}

CLI::App& add_subcommand(CLI::App& parent, const char* name, const char* summary,
                         const Strings& examples) {
  CLI::App& command = *parent.add_subcommand(name, summary);
  add_examples(command, examples);
  return command;
}

}  // namespace rematch
