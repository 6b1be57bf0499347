#pragma once
#include <string>

namespace rematch {

/// Text broken at blanks into lines of at most `columns`; all but the first begin with `indent`
/// blanks. Words and commands in backticks stay whole; lines of the text stay lines.
std::string wrapped(const std::string& text, size_t indent, size_t columns = 80);

}  // namespace rematch
