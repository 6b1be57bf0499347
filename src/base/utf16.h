#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// @throws UserError (data) for text that begins with a UTF-16 byte order mark
void refuse_utf16(std::string_view text, const std::string& where);

}  // namespace rematch
