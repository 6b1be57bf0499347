#include <CLI/CLI.hpp>

#include "program/cli/command_set.h"

namespace rematch {

void add_examples(CLI::App& command, const std::vector<std::string>& arguments) {
  std::string name, text = command.get_footer();
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent())
    name = " " + app->get_name() + name;
  text += text.empty() ? "Examples:" : "\nExamples:";
  for (const std::string& each : arguments) text += "\n " + name + (each.empty() ? "" : " ") + each;
  command.footer(text);
}

}  // namespace rematch
