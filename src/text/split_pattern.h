#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// A pre-tokenizer's regular expression (Oniguruma, Ruby syntax) rewritten so that PCRE2 with UTF
/// and UCP matches the same text.
/// `\s` becomes White_Space (PCRE2's adds U+180E), categories get the code points that PCRE2's
/// Unicode tables lack.
/// @param where  file and key, for the error
/// @throws UserError (data) naming the first construct with different meanings in the two
/// engines or that is not implemented
std::string pcre_pattern_of(std::string_view pattern, const std::string& where);

/// A literal text as a PCRE2 pattern.
std::string pcre_pattern_of_literal(std::string_view text);

}  // namespace rematch
