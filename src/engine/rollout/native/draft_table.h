#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flow/token.h"

namespace rematch {

/// The last tokens of a sequence, from which the next one is drafted.
class DraftContext {
 public:
  static constexpr size_t kLength = 8;

  void push(TokenId token_id) {
    for (size_t i = 1; i < kLength; ++i) last_[i - 1] = last_[i];
    last_.back() = token_id;
  }
  /// The last `count` ids, padded with -1; count ≤ kLength.
  std::span<const TokenId> last(size_t count) const { return std::span(last_).last(count); }

 private:
  std::array<TokenId, kLength> last_{-1, -1, -1, -1, -1, -1, -1, -1};
};

/// Drafts the next token of an answer: the token that followed the same context before, in any
/// answer. Answers of one task are similar: in `", "bbox_2d": [<|coord_12|>, <|coord_` only the
/// numbers are new. Torch-free; a fixed 0.6 MB, no allocation after construction.
///
/// Three contexts are tried: the last eight and the last four tokens, in which all coord tokens are
/// equal (the position within an object matters, not its numbers), and the last two tokens as they
/// are. Hit rates are counted per context length and per number of consecutive hits.
class DraftTable {
 public:
  struct Guess {
    TokenId token_id = -1;   ///< -1 = none
    double probability = 0;  ///< estimated from the counts
  };
  /// @param coord_ids  ids that are equal in long contexts; may be empty
  explicit DraftTable(std::span<const TokenId> coord_ids);

  /// The most probable guess. Cost: three lookups.
  Guess guess(const DraftContext& context) const;
  /// Records the token that followed a context. Cost: three lookups.
  void learn(const DraftContext& context, TokenId token_id);

 private:
  static constexpr size_t kNumSlots = 1 << 14;  // per context length
  static constexpr size_t kMaxInARow = 7;
  struct Rule {
    size_t length = 0;
    bool folds_coords = false;
  };
  static constexpr std::array<Rule, 3> kRules{{{8, true}, {4, true}, {2, false}}};
  struct Slot {
    uint32_t tag = 0;  ///< identifies the context; contexts with the same slot evict each other
    TokenId token_id = -1;
    uint32_t num_right = 0;  ///< in a row, at most kMaxInARow
  };
  struct Count {
    double right = 1, tried = 2;
    double probability() const { return right / tried; }
  };

  uint64_t hash(size_t rule, const DraftContext& context) const;
  const Slot* find(size_t rule, uint64_t hash) const;

  std::vector<bool> is_coord_;
  std::array<std::vector<Slot>, kRules.size()> slots_;
  std::array<std::array<Count, kMaxInARow + 1>, kRules.size()> counts_;
};

}  // namespace rematch
