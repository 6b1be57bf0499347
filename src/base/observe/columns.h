#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/terminal_text.h"

namespace rematch {

/// Cuts a text after `width` columns.
std::string clip(const std::string& text, size_t width);

/// Appends spaces up to `width` columns.
std::string pad(const std::string& text, size_t width);

/// Formats rows with aligned columns and an underlined header; no newline at the end.
std::string table_text(const std::vector<Strings>& rows);

}  // namespace rematch
