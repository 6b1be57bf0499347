#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/rollout/native/cpu/attention_plan.h"
#include "engine/rollout/native/cpu/buffer.h"
#include "engine/rollout/native/cpu/delta.h"
#include "engine/rollout/native/cpu/states.h"
#include "engine/rollout/native/cpu/weights.h"
#include "engine/rollout/native/step.h"
#include "model/kernels/attention.h"
#include "model/kernels/gemm.h"
#include "model/kernels/team.h"

namespace rematch {

// Shapes: T rows of a step, H hidden, I intermediate, D head size, nq query heads, nkv key/value
// heads, S rows that need logits, V vocabulary.

/// Keys and values of all layers of attention: [layer][keys, values][block][nkv][block_len][D].
struct CpuCache {
  CpuBuffer<uint8_t> numbers;
  StepRunner::CacheShape shape{0, 0};
  kernels::Storage storage = kernels::Storage::kFloat;
  int64_t num_kv_heads = 0, head_dim = 0;

  /// Bytes of a block's keys, or values, in one layer.
  int64_t block_bytes(int64_t block_len) const {
    return num_kv_heads * block_len * head_dim * kernels::storage_bytes(storage);
  }
  kernels::CacheLayer layer(int64_t layer_idx) const {
    const int64_t bytes = shape.num_blocks * block_bytes(shape.block_len);
    return {.keys = numbers.data() + 2 * layer_idx * bytes,
            .values = numbers.data() + (2 * layer_idx + 1) * bytes,
            .storage = storage,
            .num_kv_heads = num_kv_heads,
            .block_len = shape.block_len,
            .head_dim = head_dim};
  }
};

/// A forward pass of the decoder on the kernels of src/model/kernels. Distributes the work over
/// threads and owns all memory that it writes, except the cache and the states.
class CpuPass {
 public:
  /// All arguments must outlive the pass.
  CpuPass(const TextDescription& text, const CpuWeights& weights, const CpuCache& cache,
          const CpuStates& states)
      : text_(text), weights_(weights), cache_(cache), delta_(text, states) {}

  /// Makes room for steps of this many rows.
  void reserve_rows(int64_t num_rows);
  /// Releases the memory of steps.
  void release() {
    scratch_ = {};
    delta_.release();
  }
  /// Computes the logits of the rows that need them, valid until the next call; stores keys and
  /// values in the cache, and moves states on.
  /// @param step  with valid tokens, blocks and visual rows
  std::span<float> run(const Step& step, int num_threads);

 private:
  // Everything a step writes except the cache, the states and what delta_ owns.
  struct Scratch {
    CpuBuffer<float> hidden_TH, normed_TH;
    CpuBuffer<float> qkv_T;    // queries, keys, values, output gates
    CpuBuffer<float> mixed_T;  // inputs of a mixer's last product
    CpuBuffer<float> gate_TI, up_TI;
    // interleaved inputs of products; down_inputs: of the last one of the feed-forward network
    CpuBuffer<float> inputs, down_inputs;
    CpuBuffer<float> cos_T, sin_T;  // [T, rotated values / 2]
    CpuBuffer<float> last_SH, logits_SV;
    CpuBuffer<float> attention;       // per worker
    CpuBuffer<const void*> pointers;  // per worker
    CpuBuffer<float> partials;
  };

  int64_t group() const { return text_.num_attention_heads / text_.num_key_value_heads; }
  int64_t q_width() const { return text_.num_attention_heads * text_.head_dim; }
  int64_t kv_width() const { return text_.num_key_value_heads * text_.head_dim; }
  int64_t qkv_width() const { return (has_gates_ ? 2 : 1) * q_width() + 2 * kv_width(); }
  kernels::Rows hidden() const { return {scratch_.hidden_TH.data(), text_.hidden_size}; }
  kernels::Rows normed() const { return {scratch_.normed_TH.data(), text_.hidden_size}; }
  kernels::Rows qkv(int64_t first_column) const {
    return {scratch_.qkv_T.data() + first_column, qkv_width()};
  }
  kernels::Rows mixed() const { return {scratch_.mixed_T.data(), mixed_width_}; }
  kernels::Rows gate() const { return {scratch_.gate_TI.data(), text_.intermediate_size}; }
  kernels::InterleavedRows inputs(int64_t num_rows, int64_t width) const {
    return {scratch_.inputs.data(), num_rows, width};
  }
  kernels::Rows up() const { return {scratch_.up_TI.data(), text_.intermediate_size}; }

  static bool find_gates(const TextDescription& text);
  void reserve_workers(int num_workers);
  void mark_visual_rows(const Step& step);
  void find_last_rows(const Step& step);
  int64_t num_rows() const { return std::ssize(visual_by_row_); }

  // One worker's share of a step, with a barrier wherever workers need each other's results.
  void work(const Step& step, const kernels::Worker& worker) const;
  void embed(const Step& step, const kernels::Worker& worker) const;
  void compute_rope(const Step& step, const kernels::Worker& worker) const;
  void normalise(int64_t deepstack, const CpuRmsNorm& norm, int64_t num_rows,
                 const kernels::Worker& worker) const;
  void add_deepstack(int64_t deepstack, int64_t step_row, int64_t row) const;
  void multiply(const kernels::PackedWeights& w, const kernels::InterleavedRows& x,
                const kernels::Rows& y, kernels::Into into, const kernels::Worker& worker) const;
  void store_heads(const Step& step, int64_t layer_idx, const CpuAttention& layer,
                   const kernels::Worker& worker) const;
  // Narrowed: the results are those of last_rows_ only, at the front.
  void mix_by_attention(const Step& step, const CpuLayer& layer, bool narrows,
                        const kernels::Worker& worker) const;
  void mix_by_delta(const Step& step, const CpuLayer& layer, bool narrows,
                    const kernels::Worker& worker) const;
  void keep_last_rows(const kernels::Rows& rows, int64_t width,
                      const kernels::Worker& worker) const;
  kernels::AttentionTask attention_task(const Step& step, bool narrows,
                                        const CpuAttentionPlan::Task& task) const;
  void attend(const Step& step, bool narrows, int64_t layer_idx,
              const kernels::Worker& worker) const;
  void apply_gates(bool narrows, const kernels::Worker& worker) const;
  void feed_forward(const CpuLayer& layer, int64_t num_rows, const kernels::Worker& worker) const;
  void compute_logits(int64_t deepstack, const kernels::Worker& worker) const;

  const TextDescription& text_;
  const CpuWeights& weights_;
  const CpuCache& cache_;
  const bool has_gates_ = find_gates(text_);
  const int64_t mixed_width_ =
      std::max(q_width(), text_.delta() == nullptr ? 0 : text_.delta()->value_width());
  CpuDeltaMixer delta_;
  Scratch scratch_;
  CpuAttentionPlan plan_, last_plan_;
  std::vector<const VisualRow*> visual_by_row_;  // [T]; null for text
  std::vector<int64_t> last_rows_;               // rows that need logits
  Step last_step_;                               // a step of these rows; sequences only
  std::vector<int64_t> first_last_rows_;  // first index in last_rows_ per sequence of last_step_
  bool is_narrowed_ = false;              // some rows need no logits
};

}  // namespace rematch
