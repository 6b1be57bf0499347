#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// Text with &, <, > and quotes written for HTML.
std::string html_text(std::string_view text);

/// A whole page that needs nothing else: style for light and dark, wide and narrow, and the script
/// of the gallery's slider.
std::string html_page(const std::string& title, const std::string& body);

/// A table whose first row is the header; numbers stand to the right. Cells that end in '*' are the
/// best of their row.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

/// A coloured square with its name, kept on one line. @param color  attribute of the square, e.g.
/// class="f0"
std::string legend_item(const std::string& color, const std::string& name);

/// Colour class of a series, 0 … 5 in turn, as the style has it.
std::string series_class(size_t index);

}  // namespace rematch
