#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/rollout/native/aten/decode_graphs.h"
#include "engine/rollout/native/aten/states.h"
#include "engine/rollout/native/step.h"
#include "model/nn/attention.h"
#include "model/nn/attention_choice.h"

namespace rematch {

// Shapes: T rows of a step, S sequences, P rows of prefills, L cached tokens, N heads, D head size.

/// Index tensors of one step; made once, used by every layer.
struct AttentionPlan {
  at::Tensor slots_T;  ///< where each row's key and value are stored
  /// of sequences with one row; undefined = all rows, in order
  at::Tensor decode_rows_S;
  /// of these sequences; undefined = no sequence decodes
  CachedTokens decode;
  struct Prefill {
    int64_t first_row = 0, num_rows = 0;
    at::Tensor slots_L;
    at::Tensor mask;  ///< [1, 1, rows, L]
  };
  std::vector<Prefill> prefills;
  /// All prefills in one call, if attention supports cumulative lengths; `prefills` is then empty.
  struct VarlenPrefill {
    at::Tensor rows_P, slots_L;  ///< of all sequences, concatenated
    SegmentBounds queries, keys;
  };
  std::optional<VarlenPrefill> varlen;
};

/// Attention of a decoder layer that reads and writes keys and values in pages; the delta rule on
/// states in slots. All arguments must outlive it.
class PagedAttention : public AttentionContext {
 public:
  /// @param states  null if the model has none
  PagedAttention(const at::Tensor& cache, const AttentionPlan& plan, AtenStates* states,
                 AtenStatePlan state_plan)
      : cache_(cache), plan_(plan), states_(states), state_plan_(std::move(state_plan)) {}

  at::Tensor mix_by_delta(int64_t layer_idx, const DeltaTokens& tokens) override;
  at::Tensor attend(int64_t layer_idx, const at::Tensor& q_TND, const at::Tensor& k_TND,
                    const at::Tensor& v_TND) override;

 private:
  void decode(const at::Tensor& q_TND, const at::Tensor& keys, const at::Tensor& values,
              at::Tensor& out) const;
  at::Tensor attend_to_gathered(const at::Tensor& q_SND, const at::Tensor& keys,
                                const at::Tensor& values) const;

  const at::Tensor& cache_;
  const AttentionPlan& plan_;
  AtenStates* states_;
  AtenStatePlan state_plan_;
};

}  // namespace rematch
