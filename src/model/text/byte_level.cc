#include "model/text/byte_level.h"

#include <array>

#include "base/text.h"

namespace rematch {
namespace {

constexpr int kAlphabetEnd = 0x144;  // one past the last character of the alphabet

struct Alphabet {
  std::array<char32_t, 256> character_of{};
  std::array<int, kAlphabetEnd> byte_of{};  // -1 = not in the alphabet

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t character = printable ? static_cast<char32_t>(byte) : next++;
      character_of[byte] = character;
      byte_of[character] = byte;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string entry_to_bytes(std::string_view entry) {
  std::string bytes;
  bytes.reserve(entry.size());
  for (size_t offset = 0; offset < entry.size();) {
    const char32_t character = next_code_point(entry, offset);
    const int byte = character < kAlphabetEnd ? alphabet().byte_of[character] : -1;
    if (byte < 0) return std::string(entry);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string bytes_to_entry(std::string_view bytes) {
  std::string entry;
  entry.reserve(bytes.size());
  for (const char byte : bytes)
    append_utf8(entry, alphabet().character_of[static_cast<unsigned char>(byte)]);
  return entry;
}

}  // namespace rematch
