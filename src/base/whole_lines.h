#pragma once
#include <string_view>

namespace rematch {

/// The complete lines of a log that grows line by line. A partial last line is what a process
/// killed while writing leaves, and zeros are what a loss of power leaves: a partial line, and
/// whatever lies behind a zero byte, is not part of it.
std::string_view whole_lines(std::string_view content);

}  // namespace rematch
