#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// NFC as in Hugging Face tokenizers, whose tables are of Unicode 9: newer combining characters
/// neither move nor compose. Differs from normalize_nfc() in about a hundred rare characters. Cost:
/// linear.
/// @param utf8  must be valid UTF-8
std::string reference_nfc(std::string_view utf8);

}  // namespace rematch
