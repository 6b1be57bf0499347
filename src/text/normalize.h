#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// Canonical composition as Hugging Face tokenizers computes it: with the tables of Unicode 9, so
/// that newer combining characters neither move nor compose. Differs from normalize_nfc() in about
/// a hundred rare characters.
/// @param utf8  must be valid UTF-8. Cost: linear.
std::string reference_nfc(std::string_view utf8);

}  // namespace rematch
