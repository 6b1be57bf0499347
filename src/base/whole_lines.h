#pragma once
#include <string_view>

namespace rematch {

/// The complete lines of a log that grows line by line. Drops a partial last line, which a process
/// killed while writing leaves, and everything from the first zero byte on, which a loss of power
/// leaves.
std::string_view whole_lines(std::string_view content);

}  // namespace rematch
