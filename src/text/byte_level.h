#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// The byte-level alphabet of GPT-2 style vocabularies: every byte is written as one printable
/// character (printable Latin-1 as itself, the other 68 bytes as U+0100 … U+0143 in byte order).
/// @source openai/gpt-2, bytes_to_unicode

/// A vocabulary entry as raw bytes. An entry with a character outside the alphabet stands for its
/// own UTF-8 bytes.
/// @param entry  valid UTF-8
std::string bytes_of_entry(std::string_view entry);

/// Raw bytes as a vocabulary entry spells them.
std::string entry_of_bytes(std::string_view bytes);

}  // namespace rematch
