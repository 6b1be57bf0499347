#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/flow/token.h"
#include "engine/rollout/sampler.h"

namespace rematch {

struct VisionFeatures;

// Shapes: T tokens of a step, S its sequences, L text layers, H text hidden, V vocabulary.

/// The rows of one sequence in a step: `num_rows` tokens after the `num_cached` tokens with keys
/// and values in its blocks.
struct StepSequence {
  int64_t first_row = 0;  ///< among the step's T rows
  /// ≥ 1; more than one for prefills and drafts
  int64_t num_rows = 0;
  int64_t num_cached = 0;  ///< tokens before them
  /// Cache blocks: token i is in slot i % block_len of block_table[i / block_len]. Covers
  /// num_cached + num_rows tokens.
  std::span<const int32_t> block_table;
  int64_t num_logits = 0;  ///< number of last rows that need logits, ≤ num_rows
  /// Slot of its recurrent state; -1 if the model has none. Contents before the first token do not
  /// matter.
  int32_t state = -1;

  /// Rows before the drafts: all but the first of the rows with logits are drafts.
  int64_t num_known() const { return num_logits > 1 ? num_rows - num_logits + 1 : num_rows; }
};

/// A row with an embedding from an image.
struct VisualRow {
  int64_t row = 0;
  /// replaces the token's embedding; null if the features are not float32 on the CPU
  const float* embed_H = nullptr;
  std::vector<const float*> deepstack_H;  ///< feature k is added after layer k
  /// The same as a row of tensors, wherever they are.
  const VisionFeatures* image = nullptr;
  int64_t pad_idx = 0;
};

/// One forward pass over the next tokens of several sequences, prefill chunks and decodes together,
/// without padding.
struct Step {
  std::vector<TokenId> token_ids;     ///< [T]
  std::vector<int64_t> positions_3T;  ///< mRoPE: temporal row, then height, then width
  std::vector<StepSequence> sequences;
  std::vector<VisualRow> visual_rows;  ///< ascending by row
};

/// Runs steps on the training weights. Owns keys and values, addressed by block number, and
/// recurrent states, addressed by slot.
class StepRunner {
 public:
  struct CacheShape {
    int64_t num_blocks = 0;
    int64_t block_len = 16;  ///< tokens a block holds, ≥ 1
    int64_t num_states = 0;  ///< slots for recurrent states
  };
  virtual ~StepRunner() = default;
  /// Tokens of a block; attention of a device may read blocks of one size only.
  virtual int64_t block_len(int64_t wanted) const { return wanted; }
  /// Bytes one block takes in all layers of attention (keys and values).
  virtual int64_t block_bytes(int64_t block_len) const = 0;
  /// Bytes of a sequence's recurrent state in all layers, whatever its length; 0 = the model has
  /// none.
  virtual int64_t state_bytes() const { return 0; }
  /// Reserves the cache and all memory for steps of up to `max_rows` tokens.
  virtual void reserve(const CacheShape& shape, int64_t max_rows) = 0;
  /// Copies the first `num_tokens` tokens of a block to another (copy on write).
  virtual void copy_block(int32_t from, int32_t to, int64_t num_tokens) = 0;
  /// Copies the recurrent state in a slot to another.
  virtual void copy_state(int32_t from, int32_t to) = 0;
  /// Stores keys and values of the step's tokens. Returns the float32 logits [rows that need them,
  /// V] in the order of the rows, valid and writable until the next call. A row's result does not
  /// depend on other rows, on the division of a prompt into steps or on the thread count.
  virtual std::span<float> forward(const Step& step) = 0;
  /// True if choose() works: the logits are on a device, and stay there.
  virtual bool can_choose() const { return false; }
  /// As forward(), and chooses the next token of each row that needs logits.
  /// @param rows  of the sampler, in the order of those rows
  virtual std::vector<ChosenToken> choose(const Step& /*step*/,
                                          std::span<SamplerRow* const> /*rows*/) {
    return {};
  }
  /// Greedy choices of choose() in which the best two logits nearly tied.
  virtual int64_t num_near_ties() const { return 0; }
  /// Number of rows that take about as long to multiply as reading the weights once; decides
  /// whether a draft is worth a row. 0 = drafts are never worth it.
  virtual double rows_per_reading() const { return 0; }
  /// Most drafts of one sequence in a step that a recurrent state can take back.
  virtual int64_t max_drafts() const { return std::numeric_limits<int64_t>::max(); }
  /// Reads the training weights and merges an adapter: call it before the first step and whenever
  /// they have changed.
  virtual void refresh() {}
  /// Releases the cache and merged weights; call refresh() and reserve() before the next step.
  virtual void release() = 0;
};

}  // namespace rematch
