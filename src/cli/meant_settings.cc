#include "cli/meant_settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/terminal_text.h"
#include "base/text.h"
#include "config/foreign.h"

namespace rematch {
namespace {

bool is_option(const std::string& argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

bool is_number(const std::string& argument) {
  char* end = nullptr;
  std::strtod(argument.c_str(), &end);
  return !argument.empty() && *end == '\0';
}

}  // namespace

std::vector<std::string> unexpected_arguments(const CLI::App& command,
                                              const std::vector<std::string>& arguments) {
  std::vector<std::string> left = command.remaining(), ordered;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto at = std::find(left.begin(), left.end(), arguments[i]);
    if (at == left.end()) continue;
    left.erase(at);
    ordered.push_back(arguments[i]);
    // A command with room for another input has taken the option's value for it.
    const bool takes_next = is_option(arguments[i]) && i + 1 < arguments.size() &&
                            std::find(left.begin(), left.end(), arguments[i + 1]) == left.end();
    if (takes_next && is_number(arguments[i + 1])) ordered.push_back(arguments[++i]);
  }
  return ordered;
}

std::string meant_settings(const CLI::App& command, const std::vector<std::string>& unexpected) {
  if (command.get_option_no_throw("--set") == nullptr) return "";
  std::vector<std::string> settings;
  for (size_t i = 0; i < unexpected.size(); ++i) {
    const std::string& argument = unexpected[i];
    const size_t equals = argument.find('=');
    if (!is_option(argument) && equals == std::string::npos) return "";
    const std::string key = guess_key(argument.substr(0, equals));
    if (key.empty()) return "";
    std::string value = "true";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < unexpected.size() && !is_option(unexpected[i + 1])) {
      value = unexpected[++i];
    }
    settings.push_back("--set " +
                       shell_word(key + "=" + meant_value(argument.substr(0, equals), value)));
  }
  return join(settings, " ");
}

}  // namespace rematch
