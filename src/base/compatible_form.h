#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// NFKC without invisible characters: full-width letters and ligatures become the usual ones. Input
/// must be valid UTF-8.
std::string compatible_form(std::string_view utf8);

}  // namespace rematch
