#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// Rewrites a pre-tokenizer's regular expression (Oniguruma, Ruby syntax) so that PCRE2 with UTF
/// and UCP matches the same text: `\s` becomes White_Space (PCRE2 adds U+180E), and categories get
/// the code points that PCRE2's Unicode tables lack.
/// @param where  file and key, for the error
/// @throws UserError (data) with the first construct that is not implemented or that the two
/// engines interpret differently
std::string to_pcre_pattern(std::string_view pattern, const std::string& where);

/// Escapes a literal text as a PCRE2 pattern.
std::string literal_to_pcre_pattern(std::string_view text);

}  // namespace rematch
