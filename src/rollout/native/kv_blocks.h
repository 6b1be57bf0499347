#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/content_key.h"
#include "flow/token.h"

namespace rematch {

/// The pads of one image among the tokens of a prompt.
struct ImageSpan {
  int64_t first_token = 0;
  int64_t num_tokens = 0;
  ContentKey content;  ///< of pixels and grid
};

/// Key of a block of tokens and all that comes before it: of tokens [first_token, first_token +
/// token_ids.size()) of a sequence; pads count with the content of their images.
/// @param parent     key of all tokens before them; {} at the start
/// @param token_ids  of the block alone
/// @param images     of the whole sequence
ContentKey chain_key(const ContentKey& parent, std::span<const TokenId> token_ids,
                     int64_t first_token, std::span<const ImageSpan> images);

/// The holders of each block of the key/value cache, and the blocks whose content may be reused.
/// Torch-free: numbers only.
///
/// A block is used (one or more holders), kept (no holder, but its content has a key) or empty.
/// Kept blocks are the first choice of acquire() and the last resort of allocate(), least recently
/// released first. Untouched blocks take no memory yet (StepRunner::reserve maps it lazily on CPU),
/// so allocate() avoids them while more blocks are kept than used.
class KvBlocks {
 public:
  struct Options {
    int64_t num_blocks = 0;
    int64_t block_len = 16;    ///< tokens a block holds, ≥ 1
    bool prefix_cache = true;  ///< false: no content is ever found again
  };
  explicit KvBlocks(const Options& options);

  int64_t num_blocks() const { return options_.num_blocks; }
  int64_t block_len() const { return options_.block_len; }
  bool prefix_cache() const { return options_.prefix_cache; }
  /// Blocks that hold `num_tokens` tokens; rounded up, right for any count that fits int64.
  int64_t blocks_for(int64_t num_tokens) const {
    return num_tokens / block_len() + (num_tokens % block_len() != 0 ? 1 : 0);
  }

  /// Blocks that allocate() can give: all that are not used.
  int64_t num_available() const { return num_blocks() - num_used_; }
  int64_t num_used() const { return num_used_; }
  /// Blocks without a holder whose content can be found again.
  int64_t num_kept() const { return static_cast<int64_t>(kept_.size()); }
  /// Blocks that have been written to.
  int64_t num_touched() const { return num_touched_; }
  int64_t num_holders(int32_t block) const { return block_at(block).num_holders; }

  /// A block for the caller alone. Its former content is forgotten. One must be available. Cost
  /// O(log blocks).
  int32_t allocate();
  /// Adds a holder to the block with that content; nothing when there is none. The holder must not
  /// write to it.
  std::optional<int32_t> acquire(const ContentKey& key);
  /// Removes a holder.
  void release(int32_t block);
  /// Publishes the content of a used block, in addition to earlier keys (the first tokens of a
  /// growing block, then all of it). Its tokens must not change afterwards. No-op when the content
  /// is already known or prefix_cache is off.
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
  const Block& block_at(int32_t block) const;
  Block& block_at(int32_t block);
  int32_t take_unused();
  int32_t take_oldest_kept();

  Options options_;
  std::vector<Block> blocks_;  ///< those touched so far
  std::set<int32_t> empty_;    ///< touched; lowest first keeps the memory in use together
  std::map<uint64_t, int32_t> kept_;
  std::unordered_map<ContentKey, int32_t, LowBits> by_content_;
  int64_t num_used_ = 0;
  int64_t num_touched_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace rematch
