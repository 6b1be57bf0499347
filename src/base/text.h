#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// True when the bytes are well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_valid_utf8(std::string_view bytes);

/// Text without leading and trailing whitespace as defined by Python's `str.strip()` (Unicode
/// White_Space and U+001C..U+001F). Input must be valid UTF-8.
std::string python_strip(std::string_view utf8);

/// Canonical composition (NFC). Input must be valid UTF-8. ASCII input is returned unchanged.
std::string normalize_nfc(std::string_view utf8);

/// A text with composed characters ("é" as one code point) where it has others, and the other way
/// round; macOS and Linux write the names of files differently.
std::string swap_unicode_form(std::string_view utf8);

/// The form in which labels are compared: NFKC, then case folded, white space collapsed to single
/// spaces and trimmed. Input must be valid UTF-8.
std::string normalize_label(std::string_view utf8);

/// Appends a code point as UTF-8.
/// @param code_point 0..0x10FFFF, no surrogate
void append_utf8(std::string& out, char32_t code_point);

/// Decodes the code point at `offset` and moves `offset` past it. Input must be valid UTF-8.
char32_t next_code_point(std::string_view utf8, size_t& offset);

/// The candidates closest to `name`, best first, at most `limit`; only those within a third of the
/// name's length (at least 2 edits). A name of more than 80 bytes is near to none.
Strings near_names(std::string_view name, const Strings& candidates, size_t limit = 3);

/// `text` with its ASCII letters in lower case; keeps its length.
std::string lower_case(std::string text);

/// `parts` joined with `separator` between them.
std::string join(const Strings& parts, std::string_view separator);

/// `text`, cut between two characters to at most `most` bytes, then with "…".
std::string shorten_bytes(std::string_view text, size_t most);

/// `text` up to its first line end.
std::string first_line(std::string_view text);

/// Pieces of `text` between `separator`s; always at least one.
Strings split(std::string_view text, char separator);

}  // namespace rematch
