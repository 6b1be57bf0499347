#include "estep/parse/prefix.h"

#include <string_view>

#include "base/text.h"

namespace rematch {
namespace {

std::vector<int> encode_bytes(std::string_view bytes, const Tokenizer& tokenizer) {
  if (is_valid_utf8(bytes)) {
    std::vector<int> ids = tokenizer.encode(bytes);
    if (tokenizer.decode_bytes(ids) == bytes) return ids;
  }
  std::vector<int> ids;
  for (const char c : bytes) ids.push_back(tokenizer.byte_token(static_cast<unsigned char>(c)));
  return ids;
}

}  // namespace

std::vector<int> cut_token_ids(const std::vector<int>& token_ids, const TokenBytes& tokens, size_t cut, const Tokenizer& tokenizer) {
  std::vector<int> kept;
  size_t token = 0;
  for (; token < tokens.ends.size() && tokens.ends[token] <= cut; ++token) kept.push_back(token_ids[token]);
  const size_t begin = tokens.begin_of(token);
  if (begin < cut) {
    const std::vector<int> rest = encode_bytes(std::string_view(tokens.bytes).substr(begin, cut - begin), tokenizer);
    kept.insert(kept.end(), rest.begin(), rest.end());
  }
  return kept;
}

}  // namespace rematch
