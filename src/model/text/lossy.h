#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// Converts bytes to valid UTF-8, as Python's bytes.decode("utf-8", "replace"): each invalid
/// sequence (the longest prefix of a character) becomes one U+FFFD. Cost: linear.
std::string lossy_utf8(std::string_view bytes);

}  // namespace rematch
