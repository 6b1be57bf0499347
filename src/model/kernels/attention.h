#pragma once
#include <cstdint>

#include "model/kernels/types.h"

namespace rematch::kernels {

// Shapes: D head size, nkv key/value heads, G query heads of one of them (a group).

/// Keys and values of one layer, in blocks. A head's values are stored token by token within a
/// block, [block_len, D]. Its keys are transposed, [D, block_len]: neighbouring lanes are
/// neighbouring keys, so that no score needs a sum over lanes.
struct CacheLayer {
  void* keys = nullptr;    ///< [blocks, nkv, D, block_len]
  void* values = nullptr;  ///< [blocks, nkv, block_len, D]
  Storage storage = Storage::kFloat;
  int64_t num_kv_heads = 0;
  int64_t block_len = 0;
  int64_t head_dim = 0;

  /// Number of values of one head in a block, and the offset of the first.
  int64_t head_size() const { return block_len * head_dim; }
  int64_t head_offset(int64_t block, int64_t kv_head) const {
    return (block * num_kv_heads + kv_head) * head_size();
  }
};

/// Stores the key and value of a token, D floats each, in slot `slot` of a block.
void store_token(const CacheLayer& cache, int64_t block, int64_t kv_head, int64_t slot,
                 const float* key, const float* value);

/// Keys are processed in spans of this length, from position 0. The contribution of a span to a
/// query, and the order in which spans are added, do not depend on other queries, blocks or
/// workers.
inline constexpr int64_t kAttentionSpan = 256;
/// Queries that share one pass over the keys.
inline constexpr int64_t kAttentionQueries = 12;

/// Queries of one key/value head of one sequence: query i is head `kv_head`·G + i % G of row i / G,
/// and attends up to that row's position.
struct AttentionTask {
  const int32_t* block_table = nullptr;
  int64_t first_position = 0;  ///< of row 0
  int64_t kv_head = 0;
  int64_t group = 1;  ///< G
  Range queries;      ///< at most kAttentionQueries
  ConstRows q;        ///< rows of [nq, D], from row 0 on
  Rows out;           ///< same layout as q
  /// ≥ 0: not causal (vision): every row attends to positions 0 … last_position, which the block
  /// table must cover.
  int64_t last_position = -1;
};

/// Scratch memory of one worker, valid only during one call.
struct AttentionScratch {
  float* values = nullptr;      ///< attention_scratch_floats(D) of them
  const void** rows = nullptr;  ///< kAttentionScratchRows of them
};
inline constexpr int64_t kAttentionScratchRows = 2 * kAttentionSpan + 16;
constexpr int64_t attention_scratch_floats(int64_t head_dim) {
  return kAttentionQueries * (kAttentionSpan + 3 * (head_dim + 16)) + 256;
}

/// Writes softmax(q·kᵀ/√D)·v over all spans to task.out.
void attend(const CacheLayer& cache, const AttentionTask& task, const AttentionScratch& scratch);

/// Floats of the result of one span for all queries of a task; per query D weighted values, the
/// largest score and the sum of exponentials.
constexpr int64_t attention_partial_floats(int64_t head_dim) {
  return kAttentionQueries * (head_dim + 2);
}

/// Processes one span of a task, so that several workers can share a long sequence.
/// @param partial  attention_partial_floats(D)
void attend_span(const CacheLayer& cache, const AttentionTask& task, int64_t span,
                 const AttentionScratch& scratch, float* partial);

/// Adds up spans: attend() equals attend_span() for each span followed by this.
/// @param partials  of spans 0 … num_spans − 1, consecutive
void combine_spans(const CacheLayer& cache, const AttentionTask& task, int64_t num_spans,
                   const float* partials, const AttentionScratch& scratch);

}  // namespace rematch::kernels
