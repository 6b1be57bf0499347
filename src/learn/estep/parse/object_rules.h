#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/parsed.h"
#include "learn/estep/parse/json_reader.h"
#include "learn/estep/parse/token_bytes.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Largest n of a legal key `object_n`.
inline constexpr int64_t kMaxObjectIndex = 999'999'999;

/// n of a key `object_<digits>`, leading zeros allowed; nullopt for any other key and beyond
/// kMaxObjectIndex.
std::optional<int64_t> object_index(std::string_view key);

/// The tokens of a response.
struct ResponseTokens {
  const std::vector<TokenId>& token_ids;
  const TokenBytes& tokens;
  const CoordVocab& coord_vocab;
};

/// Reads a complete entry; nullopt unless it is a valid object (BEHAVIOUR 5.5).
std::optional<ParsedObject> valid_object(const std::string& key, const JsonNode& value,
                                         const ResponseTokens& response);

}  // namespace rematch
