#include "model/text/lossy.h"

#include <cstddef>

namespace rematch {
namespace {

// Legal continuation of a first byte: the number of further bytes and the range of the next one
// (Unicode table 3-7).
struct Lead {
  size_t num_more;
  unsigned char low;
  unsigned char high;
};

Lead find_lead(unsigned char byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {2, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {3, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {4, 0, 0};  // not the first byte of a character
}

}  // namespace

std::string lossy_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Lead lead = find_lead(static_cast<unsigned char>(bytes[i]));
    size_t length = 1;
    while (lead.num_more <= 3 && length <= lead.num_more && i + length < bytes.size()) {
      const auto next = static_cast<unsigned char>(bytes[i + length]);
      if (next < (length == 1 ? lead.low : 0x80) || next > (length == 1 ? lead.high : 0xBF)) break;
      ++length;
    }
    if (length == lead.num_more + 1) {
      text += bytes.substr(i, length);
    } else {
      text += "\xEF\xBF\xBD";
    }
    i += length;
  }
  return text;
}

}  // namespace rematch
