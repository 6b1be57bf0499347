#include "engine/rollout/native/kv_blocks.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rematch {

ContentKey chain_key(const ContentKey& parent, std::span<const TokenId> token_ids,
                     int64_t first_token, std::span<const ImageSpan> images) {
  ContentHasher hasher;
  hasher.feed_value(parent);
  // distinguishes a partial block from a full one
  hasher.feed_value(static_cast<uint64_t>(token_ids.size()));
  hasher.feed(token_ids.data(), token_ids.size_bytes());
  const int64_t end_token = first_token + std::ssize(token_ids);
  for (const ImageSpan& image : images) {
    const int64_t begin = std::max(image.first_token, first_token),
                  end = std::min(image.first_token + image.num_tokens, end_token);
    if (begin >= end) continue;
    hasher.feed_value(begin - first_token);
    hasher.feed_value(end - first_token);
    hasher.feed_value(image.content);
  }
  return hasher.key();
}

KvBlocks::KvBlocks(const Options& options) : options_(options) {
  REMATCH_CHECK(
      options.num_blocks >= 0 && options.num_blocks <= INT32_MAX && options.block_len >= 1,
      fmt::format("{} blocks of {} tokens", options.num_blocks, options.block_len));
}

KvBlocks::Block& KvBlocks::block_at(int32_t block) {
  REMATCH_CHECK(block >= 0 && block < num_touched_,
                fmt::format("block {} of {}", block, num_touched_));
  return blocks_[block];
}

int32_t KvBlocks::take_oldest_kept() {
  const int32_t block = kept_.begin()->second;
  kept_.erase(kept_.begin());
  Block& taken = block_at(block);
  for (const ContentKey& key : taken.keys) by_content_.erase(key);
  taken.keys.clear();
  return block;
}

int32_t KvBlocks::take_unused() {
  if (!empty_.empty()) return empty_.extract(empty_.begin()).value();
  const bool has_fresh = num_touched_ < num_blocks();
  if (!kept_.empty() && (!has_fresh || num_kept() > num_used_)) return take_oldest_kept();
  REMATCH_CHECK(has_fresh, fmt::format("all {} blocks are used", num_blocks()));
  blocks_.emplace_back();
  return static_cast<int32_t>(num_touched_++);
}

int32_t KvBlocks::allocate() {
  const int32_t block = take_unused();
  block_at(block).num_holders = 1;
  ++num_used_;
  return block;
}

std::optional<int32_t> KvBlocks::acquire(const ContentKey& key) {
  const auto found = by_content_.find(key);
  if (found == by_content_.end()) return std::nullopt;
  Block& block = block_at(found->second);
  if (block.num_holders++ == 0) {
    kept_.erase(block.released_at);
    ++num_used_;
  }
  return found->second;
}

void KvBlocks::release(int32_t block) {
  Block& released = block_at(block);
  REMATCH_CHECK(released.num_holders > 0, fmt::format("block {} has no holder", block));
  if (--released.num_holders > 0) return;
  --num_used_;
  if (released.keys.empty()) {
    empty_.insert(block);
    return;
  }
  released.released_at = clock_++;
  kept_.emplace(released.released_at, block);
}

void KvBlocks::publish(int32_t block, const ContentKey& key) {
  Block& published = block_at(block);
  REMATCH_CHECK(published.num_holders > 0, fmt::format("block {} has no holder", block));
  if (!prefix_cache() || !by_content_.emplace(key, block).second) return;
  published.keys.push_back(key);
}

}  // namespace rematch
