#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// The text of a file without its byte order mark.
/// @throws UserError (data) for UTF-16
std::string_view text_of(std::string_view bytes, const std::string& path);

/// The text of a file that must be UTF-8, without its byte order mark.
/// @throws UserError (data) for another encoding; (environment) if the file cannot be read
std::string read_utf8(const std::string& path);

/// Reads the lines of a text file without its byte order mark. A line may end in "\r".
/// @throws UserError as text_of; (environment) if the file cannot be read
std::vector<std::string> read_lines(const std::string& path);

}  // namespace rematch
