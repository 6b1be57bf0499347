#pragma once
#include <string>
#include <string_view>

namespace rematch {

// The byte-level alphabet of GPT-2 style vocabularies writes every byte as one printable character:
// printable Latin-1 as itself, the other 68 bytes as U+0100 … U+0143 in byte order.

/// Converts a vocabulary entry to raw bytes; an entry with a character outside the alphabet keeps
/// its UTF-8 bytes.
/// @param entry  valid UTF-8. @source openai/gpt-2, bytes_to_unicode
std::string entry_to_bytes(std::string_view entry);

/// Converts raw bytes to the spelling of a vocabulary entry.
std::string bytes_to_entry(std::string_view bytes);

}  // namespace rematch
