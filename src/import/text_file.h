#pragma once
#include <string>
#include <vector>

namespace rematch {

/// Lines of a text file, without a byte order mark at its start. A line may end in "\r".
/// @throws UserError (data) for UTF-16; (environment) when it cannot be read
std::vector<std::string> read_lines(const std::string& path);

}  // namespace rematch
