#include "program/cli/help_format.h"

#include <algorithm>

#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kNameColumns = 30;  ///< CLI11's column of descriptions

/// "INT in [0 - 200]" of "INT:INT in [0 - 200]": the validator repeats the type.
std::string type_text(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string range = colon == std::string::npos ? name : name.substr(colon + 1);
  return range == "NONNEGATIVE" ? name.substr(0, colon) + " from 0" : range;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  Strings names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  return join(names, ", ");
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const bool is_list = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  std::string text = option->get_type_size() == 0 || option->get_positional()
                         ? ""
                         : " " + type_text(option->get_type_name());
  if (is_list) text += " ...";
  return text + (option->get_required() && !option->get_positional() ? " (required)" : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
  if (!option->get_excludes().empty())
    text += " (not with " + names_of(option->get_excludes()) + ")";
  return text;
}

std::string wrapped_help(const std::string& text, size_t columns) {
  if (columns == 0) return text;
  std::string all;
  for (const std::string& line : split(text, '\n')) {
    const bool is_example = line.starts_with("  rematch ") && line.find("   ", 2) == line.npos;
    const size_t indent = line.starts_with("  ") ? std::min(kNameColumns, columns / 2) : 0;
    all += (is_example ? line : wrapped(line, indent, columns)) + "\n";
  }
  all.pop_back();
  return all;
}

}  // namespace rematch
