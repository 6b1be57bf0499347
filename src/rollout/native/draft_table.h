#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/token.h"

namespace rematch {

/// The end of a sequence of tokens, from which the next one is drafted.
class DraftContext {
 public:
  static constexpr size_t kLength = 8;

  void push(TokenId token_id) {
    for (size_t i = 1; i < kLength; ++i) last_[i - 1] = last_[i];
    last_.back() = token_id;
  }
  /// The last `count` ids, -1 where there are none; count ≤ kLength.
  std::span<const TokenId> last(size_t count) const { return std::span(last_).last(count); }

 private:
  std::array<TokenId, kLength> last_{-1, -1, -1, -1, -1, -1, -1, -1};
};

/// Drafts the next token of an answer from what followed the same tokens before, in any answer.
/// Answers of one task are similar: in
/// `", "bbox_2d": [<|coord_12|>, <|coord_` only the numbers are new. Torch-free; a fixed 0.6 MB, no
/// allocation after construction.
///
/// Three contexts are tried: the last eight and the last four tokens, in which all coord tokens
/// count as the same one (so that the position in an object is known, whatever it contains), and
/// the last two as they are. Their hit rates are counted, separately for contexts that were right
/// several times in a row.
class DraftTable {
 public:
  struct Guess {
    TokenId token_id = -1;   ///< -1 = none
    double probability = 0;  ///< of being right, from the counts
  };
  /// @param coord_ids  ids that count as one in long contexts; may be empty
  explicit DraftTable(std::span<const TokenId> coord_ids);

  /// The guess most likely right. Cost: three lookups.
  Guess guess(const DraftContext& context) const;
  /// Records which token came. Cost: three lookups.
  void learn(const DraftContext& context, TokenId token_id);

 private:
  static constexpr size_t kNumSlots = 1 << 14;  // of each context length
  static constexpr size_t kMostInARow = 7;
  struct Rule {
    size_t length = 0;
    bool folds_coords = false;
  };
  static constexpr std::array<Rule, 3> kRules{{{8, true}, {4, true}, {2, false}}};
  struct Slot {
    uint32_t tag = 0;  ///< of the context; contexts that share a slot evict each other
    TokenId token_id = -1;
    uint32_t num_right = 0;  ///< in a row, at most kMostInARow
  };
  struct Count {
    double right = 1, tried = 2;
    double probability() const { return right / tried; }
  };

  uint64_t hash(size_t rule, const DraftContext& context) const;
  const Slot* find(size_t rule, uint64_t hash) const;

  std::vector<bool> is_coord_;
  std::array<std::vector<Slot>, kRules.size()> slots_;
  std::array<std::array<Count, kMostInARow + 1>, kRules.size()> counts_;
};

}  // namespace rematch
