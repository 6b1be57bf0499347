#include "base/percent.h"

namespace rematch {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool has_code = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                          hex_digit(text[i + 2]) >= 0;
    const int code = has_code ? hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]) : 0;
    if (code == 0) {
      decoded += text[i];
    } else {
      decoded += static_cast<char>(code);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace rematch
