#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/flow/token.h"

namespace rematch {

/// Byte-pair merges by rank. Immutable after construction, safe to share between threads.
class BytePairEncoder {
 public:
  /// A merge rule: adjacent `left` and `right` become `merged`. Its position in the list is its
  /// rank; lower ranks merge first.
  struct Merge {
    TokenId left = 0;
    TokenId right = 0;
    TokenId merged = 0;
  };

  /// @param byte_ids  token id of each byte
  /// @param merges    in rank order; the last rule for a pair counts
  BytePairEncoder(const std::array<TokenId, 256>& byte_ids, const std::vector<Merge>& merges);

  /// Appends the ids of one pre-tokenized word, which may have any bytes. Cost: n·log n for n
  /// bytes.
  void encode_word(std::string_view word, std::vector<TokenId>& out) const;

 private:
  struct Rule {
    int rank = 0;
    TokenId merged = 0;
  };
  const Rule* find_rule(TokenId left, TokenId right) const;
  void encode_short(std::string_view word, std::vector<TokenId>& out) const;
  void encode_long(std::string_view word, std::vector<TokenId>& out) const;

  std::array<TokenId, 256> byte_ids_;
  std::unordered_map<uint64_t, Rule> rules_;
};

}  // namespace rematch
