// Three uses of the bytes: a tokenizer.json, a split pattern with a text, a text for a real
// tokenizer. Only UserErrors may come out.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "model/text/lossy.h"
#include "model/text/normalize.h"
#include "model/text/pretokenize.h"
#include "model/text/split_pattern.h"
#include "model/text/tokenizer.h"
#include "model/text/tokenizer_file.h"

namespace {

void read_file_bytes(std::string_view bytes) { rematch::parse_tokenizer_json(bytes, "fuzz"); }

void split_text(std::string_view bytes) {
  const size_t cut = bytes.find('\n');
  if (cut == std::string_view::npos || !rematch::is_valid_utf8(bytes)) return;
  const rematch::SplitRegex regex(rematch::to_pcre_pattern(bytes.substr(0, cut), "fuzz"), "fuzz");
  const std::string_view text = bytes.substr(cut + 1);
  std::vector<std::string_view> pieces;
  regex.split(text, pieces);
  std::string joined;
  for (const std::string_view piece : pieces) joined += piece;
  if (joined != text) std::abort();
}

void encode_text(std::string_view bytes) {
  static const auto tokenizer =
      rematch::Tokenizer::load(REMATCH_SOURCE_DIR "/tests/golden/text_tokenizer/second.json");
  const std::string text = rematch::lossy_utf8(bytes);
  if (!rematch::is_valid_utf8(text)) std::abort();
  const std::string back = tokenizer->decode_bytes(tokenizer->encode(text));
  // Space next to an lstrip or rstrip token is swallowed; without added tokens the normalised text
  // comes back.
  if (tokenizer->find_added_token(text).empty() && back != rematch::reference_nfc(text))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 3) {
      case 0: read_file_bytes(bytes); break;
      case 1: split_text(bytes); break;
      default: encode_text(bytes); break;
    }
  } catch (const rematch::UserError&) {
  }
  return 0;
}
