#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// Any bytes as valid UTF-8: each ill-formed stretch (the longest that could have begun a
/// character) becomes one U+FFFD, as Python's bytes.decode("utf-8", "replace") does. Cost: linear.
std::string lossy_utf8(std::string_view bytes);

}  // namespace rematch
