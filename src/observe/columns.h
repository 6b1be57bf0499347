#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace rematch {

/// Characters of UTF-8 text (each taken as one column wide).
size_t width_of(const std::string& text);

/// The first `width` columns of a text.
std::string clipped(const std::string& text, size_t width);

/// The text with spaces after it, `width` columns in all; longer text stays as it is.
std::string padded(const std::string& text, size_t width);

/// Rows with their columns aligned, the first underlined as the header; no newline at the end.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace rematch
