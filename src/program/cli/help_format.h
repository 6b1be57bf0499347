#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace rematch {

/// Help of the commands: values, defaults and conflicts of options in words.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

/// Help wrapped at the terminal's width; example commands stay on one line, so that they can be
/// copied.
/// @param columns  0 = unchanged
std::string wrapped_help(const std::string& text, size_t columns);

}  // namespace rematch
