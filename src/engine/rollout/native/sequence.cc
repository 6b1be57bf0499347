#include "engine/rollout/native/sequence.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rematch {

bool Sequence::append(TokenId token_id) {
  token_ids_.push_back(token_id);
  if (num_right_drafts_ < drafts_.size() && drafts_[num_right_drafts_] == token_id) {
    ++num_right_drafts_;
    ++num_computed;
    return true;
  }
  drafts_.clear();
  num_right_drafts_ = 0;
  return false;
}

std::span<const TokenId> Sequence::block_tokens(int64_t block_idx, int64_t end_token) const {
  const int64_t first = block_idx * block_len_;
  REMATCH_CHECK(first < end_token && end_token <= len(),
                fmt::format("tokens {} to {} of {}", first, end_token, len()));
  return std::span(token_ids_)
      .subspan(static_cast<size_t>(first), static_cast<size_t>(end_token - first));
}

const ContentKey& Sequence::block_key(int64_t block_idx) {
  while (std::ssize(block_keys_) <= block_idx) {
    const auto next = std::ssize(block_keys_);
    const ContentKey parent = block_keys_.empty() ? ContentKey{} : block_keys_.back();
    block_keys_.push_back(chain_key(parent, block_tokens(next, (next + 1) * block_len_),
                                    next * block_len_, start_.images));
  }
  return block_keys_[block_idx];
}

ContentKey Sequence::prompt_key() {
  const int64_t last = (prompt_len() - 1) / block_len_;
  if ((last + 1) * block_len_ == prompt_len()) return block_key(last);
  const ContentKey parent = last == 0 ? ContentKey{} : block_key(last - 1);
  return chain_key(parent, block_tokens(last, prompt_len()), last * block_len_, start_.images);
}

}  // namespace rematch
