#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/rollout/native/kv_blocks.h"

namespace rematch {

/// A prompt and its answer so far, for the scheduler: tokens, and the blocks that hold them.
class Sequence {
 public:
  struct Start {
    int64_t arrival = 0;  ///< place in the queue, unique
    std::vector<TokenId> prompt_token_ids;
    std::vector<ImageSpan> images;
    int64_t max_new_tokens = 1;
    /// a later sequence has the same prompt, so that a model's state after it is worth saving
    bool is_repeated = false;
    std::string who;  ///< sample and place, for errors
  };
  /// @param block_len  of its cache
  Sequence(Start start, int64_t block_len)
      : start_(std::move(start)), token_ids_(start_.prompt_token_ids), block_len_(block_len) {}

  int64_t arrival() const { return start_.arrival; }
  const std::string& who() const { return start_.who; }
  int64_t prompt_len() const { return std::ssize(start_.prompt_token_ids); }
  /// The prompt and the tokens generated so far.
  const std::vector<TokenId>& token_ids() const { return token_ids_; }
  int64_t len() const { return std::ssize(token_ids_); }
  int64_t max_new_tokens() const { return start_.max_new_tokens; }
  bool is_repeated() const { return start_.is_repeated; }
  /// Appends the token chosen from the last logits. Returns true if it equals the next draft: it is
  /// already computed, and its logits are available. Otherwise drops the remaining drafts.
  bool append(TokenId token_id);

  /// Drafts of the tokens after the last one, computed in the same step.
  const std::vector<TokenId>& drafts() const { return drafts_; }
  void draft(TokenId token_id) { drafts_.push_back(token_id); }
  /// A known token, or a draft after the last one.
  TokenId token_at(int64_t token_idx) const {
    return token_idx < len() ? token_ids_[token_idx] : drafts_.at(token_idx - len());
  }

  /// Key of tokens [0, (block_idx + 1)·block_len), which must exist. Cost: once per block.
  const ContentKey& block_key(int64_t block_idx);
  /// Key of the whole prompt, for the block of its last tokens; block_key() if that block is full.
  ContentKey prompt_key();

  // State of the scheduler.
  std::vector<int32_t> block_table;
  int32_t state = -1;         ///< slot of its recurrent state; -1 = none
  int64_t num_computed = 0;   ///< tokens with keys and values in the blocks
  int64_t num_published = 0;  ///< blocks of the prompt that others can find

 private:
  std::span<const TokenId> block_tokens(int64_t block_idx, int64_t end_token) const;

  Start start_;
  std::vector<TokenId> token_ids_;
  std::vector<TokenId> drafts_;
  size_t num_right_drafts_ = 0;  ///< the first drafts_ that have become tokens
  int64_t block_len_;
  std::vector<ContentKey> block_keys_;
};

}  // namespace rematch
