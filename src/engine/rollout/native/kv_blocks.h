#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/content_key.h"
#include "base/flow/token.h"

namespace rematch {

/// The pads of one image among the tokens of a prompt.
struct ImageSpan {
  int64_t first_token = 0;
  int64_t num_tokens = 0;
  ContentKey content;  ///< of pixels and grid
};

/// Key of the tokens [first_token, first_token + token_ids.size()) of a sequence and all tokens
/// before them. Includes the content of images.
/// @param parent     key of the tokens before first_token; {} at the start
/// @param token_ids  of this block only
/// @param images     of the whole sequence
ContentKey chain_key(const ContentKey& parent, std::span<const TokenId> token_ids,
                     int64_t first_token, std::span<const ImageSpan> images);

/// Reference counts of the blocks of the key/value cache, and an index of blocks with reusable
/// content. Torch-free: block numbers only.
///
/// A block is used (one or more holders), kept (no holder, but its content has a key) or empty.
/// acquire() finds used and kept blocks; allocate() evicts a kept block only as a last resort,
/// least recently released first. Untouched blocks take no memory yet (StepRunner::reserve maps it
/// lazily on CPU), so allocate() prefers evicting while more blocks are kept than used.
class KvBlocks {
 public:
  struct Options {
    int64_t num_blocks = 0;
    int64_t block_len = 16;    ///< tokens a block holds, ≥ 1
    bool prefix_cache = true;  ///< false: acquire() finds nothing
  };
  explicit KvBlocks(const Options& options);

  int64_t num_blocks() const { return options_.num_blocks; }
  int64_t block_len() const { return options_.block_len; }
  bool prefix_cache() const { return options_.prefix_cache; }
  /// Number of blocks for `num_tokens` tokens, rounded up without overflow.
  int64_t blocks_for(int64_t num_tokens) const {
    return num_tokens / block_len() + (num_tokens % block_len() != 0 ? 1 : 0);
  }

  /// Blocks that allocate() can return: all that are not used.
  int64_t num_available() const { return num_blocks() - num_used_; }
  /// Blocks without a holder that acquire() can still find.
  int64_t num_kept() const { return std::ssize(kept_); }
  int64_t num_holders(int32_t block) const { return blocks_.at(block).num_holders; }

  /// Returns a block with one holder, the caller, and drops its former content. One must be
  /// available. Cost O(log blocks).
  int32_t allocate();
  /// Adds a holder to the block with that content, if there is one. The holder must not write to
  /// it.
  std::optional<int32_t> acquire(const ContentKey& key);
  /// Removes a holder.
  void release(int32_t block);
  /// Makes the content of a used block findable, in addition to earlier keys (for the first tokens
  /// of a growing block, then for all). Those tokens must not change afterwards. No-op if the
  /// content is already known or prefix_cache is off.
  void publish(int32_t block, const ContentKey& key);

 private:
  struct Block {
    int64_t num_holders = 0;
    uint64_t released_at = 0;  ///< key of kept_ while kept
    std::vector<ContentKey> keys;
  };
  struct LowBits {
    size_t operator()(const ContentKey& key) const { return static_cast<size_t>(key.low); }
  };
  Block& block_at(int32_t block);
  int32_t take_unused();
  int32_t take_oldest_kept();

  Options options_;
  std::vector<Block> blocks_;  ///< touched blocks
  std::set<int32_t> empty_;    ///< touched blocks; using the lowest first keeps memory compact
  std::map<uint64_t, int32_t> kept_;
  std::unordered_map<ContentKey, int32_t, LowBits> by_content_;
  int64_t num_used_ = 0;
  int64_t num_touched_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace rematch
