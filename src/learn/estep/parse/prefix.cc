#include "learn/estep/parse/prefix.h"

#include <string_view>

#include "base/text.h"

namespace rematch {
namespace {

std::vector<TokenId> encode_bytes(std::string_view bytes, const Tokenizer& tokenizer) {
  if (is_valid_utf8(bytes)) {
    std::vector<TokenId> ids = tokenizer.encode(bytes);
    if (tokenizer.decode_bytes(ids) == bytes) return ids;
  }
  std::vector<TokenId> ids;
  for (const char c : bytes) ids.push_back(tokenizer.byte_token(static_cast<unsigned char>(c)));
  return ids;
}

}  // namespace

std::vector<TokenId> cut_token_ids(const std::vector<TokenId>& token_ids, const TokenBytes& tokens,
                                   size_t cut, const Tokenizer& tokenizer) {
  std::vector<TokenId> kept;
  size_t token = 0;
  for (; token < tokens.ends.size() && tokens.ends[token] <= cut; ++token)
    kept.push_back(token_ids[token]);
  const size_t begin = tokens.begin(token);
  if (begin < cut) {
    const std::vector<TokenId> rest =
        encode_bytes(std::string_view(tokens.bytes).substr(begin, cut - begin), tokenizer);
    kept.insert(kept.end(), rest.begin(), rest.end());
  }
  return kept;
}

}  // namespace rematch
