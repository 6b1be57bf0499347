#include "estep/parse/strict_parser.h"

#include <algorithm>
#include <utility>

#include "estep/parse/json_reader.h"
#include "estep/parse/object_rules.h"
#include "estep/parse/prefix.h"
#include "estep/parse/token_bytes.h"
#include "text/stop_ids.h"

namespace rematch {
namespace {

// Bytes up to the first id without a token, which is a violation at its position.
TokenBytes bytes_of(const std::vector<TokenId>& token_ids, const Tokenizer& tokenizer) {
  TokenBytes tokens;
  for (const TokenId id : token_ids) {
    if (id < 0 || !tokenizer.has_token(id)) break;
    tokens.bytes += tokenizer.token_bytes(id);
    tokens.ends.push_back(tokens.bytes.size());
  }
  return tokens;
}

void judge_entries(const JsonDocument& document, const ResponseTokens& response,
                   ParsedRollout& parsed) {
  for (size_t i = 0; i < document.top.items.size(); ++i) {
    const std::string& key = document.top.keys[i];
    if (const auto index = object_index(key))
      parsed.max_object_index = std::max(parsed.max_object_index.value_or(0), *index);
    if (auto object = valid_object(key, document.top.items[i], response)) {
      parsed.objects.push_back(std::move(*object));
    } else {
      ++parsed.dropped_invalid;
    }
  }
  if (document.entry_open) ++parsed.dropped_invalid;
}

}  // namespace

ParsedRollout parse_rollout(const std::vector<TokenId>& response_token_ids,
                            const Tokenizer& tokenizer, const CoordVocab& coord_vocab,
                            const std::vector<TokenId>& stop_ids) {
  ParsedRollout parsed;
  parsed.response_token_ids = cut_at_stop_id(response_token_ids, stop_ids);
  const TokenBytes tokens = bytes_of(parsed.response_token_ids, tokenizer);
  const bool has_unknown_id = tokens.ends.size() < parsed.response_token_ids.size();
  const JsonDocument document = read_json_object(tokens.bytes, has_unknown_id);
  parsed.status = document.status;
  judge_entries(document, {parsed.response_token_ids, tokens, coord_vocab}, parsed);
  if (!document.open_end) {
    parsed.prefix_text.push_back('{');
    parsed.prefix_token_ids = tokenizer.encode("{");
    return parsed;
  }
  const size_t cut =
      document.top.items.empty() ? *document.open_end : document.top.items.back().end;
  parsed.prefix_text = tokens.bytes.substr(0, cut);
  parsed.prefix_token_ids = cut_token_ids(parsed.response_token_ids, tokens, cut, tokenizer);
  return parsed;
}

}  // namespace rematch
