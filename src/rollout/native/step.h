#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "flow/token.h"

namespace rematch {

// Shapes: T tokens of a step, S its sequences, L text layers, H text hidden, V vocabulary.

/// One sequence's share of a step: `num_rows` consecutive tokens that follow the `num_cached` ones
/// whose keys and values are in its blocks.
struct StepSequence {
  int64_t first_row = 0;  ///< of the step's T
  /// ≥ 1; more than one while prefilling, and where drafts follow the last token
  int64_t num_rows = 0;
  int64_t num_cached = 0;  ///< tokens before them
  /// Cache blocks in the order of the tokens; token i is in block i / block_len, slot i %
  /// block_len. Covers num_cached + num_rows tokens.
  std::span<const int32_t> block_table;
  int64_t num_logits = 0;  ///< needed from its last rows, ≤ num_rows
};

/// A row whose embedding comes from an image.
struct VisualRow {
  int64_t row = 0;
  const float* embed_H = nullptr;         ///< replaces the token's embedding
  std::vector<const float*> deepstack_H;  ///< feature k is added after layer k
};

/// One forward pass over the next tokens of several sequences, prefill chunks and decodes together,
/// without padding.
struct Step {
  std::vector<TokenId> token_ids;     ///< [T]
  std::vector<int64_t> positions_3T;  ///< mRoPE: temporal row, then height, then width
  std::vector<StepSequence> sequences;
  std::vector<VisualRow> visual_rows;  ///< ascending by row
};

/// Runs steps on the training weights. Owns keys and values, addressed by block number.
class StepRunner {
 public:
  struct CacheShape {
    int64_t num_blocks = 0;
    int64_t block_len = 16;  ///< tokens a block holds, ≥ 1
  };
  virtual ~StepRunner() = default;
  /// Bytes one block takes in all layers (keys and values).
  virtual int64_t block_bytes(int64_t block_len) const = 0;
  /// Reserves the cache, and whatever else steps of up to `max_rows` tokens need; steps allocate
  /// nothing after that.
  virtual void reserve(const CacheShape& shape, int64_t max_rows) = 0;
  /// Copies the first `num_tokens` tokens of a block to another (copy on write).
  virtual void copy_block(int32_t from, int32_t to, int64_t num_tokens) = 0;
  /// Writes keys and values of the step's tokens and returns logits [rows that need them, V] in the
  /// order of the rows, float32, valid and writable until the next call. A row's result never
  /// depends on the other rows, on how a prompt is cut into steps or on the thread count.
  virtual std::span<float> forward(const Step& step) = 0;
  /// The number of rows whose products take about as long as reading the weights once: decides
  /// whether a draft is worth a row. 0 = drafts are never worth it.
  virtual double rows_per_reading() const { return 0; }
  /// Reads the current training weights: call it before the first step, and after they have
  /// changed. Merges an adapter.
  virtual void refresh() {}
  /// Releases the cache and merged weights; call refresh() and reserve() before the next step.
  virtual void release() = 0;
};

}  // namespace rematch
