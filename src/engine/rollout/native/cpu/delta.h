#pragma once
#include <cstdint>

#include "engine/rollout/native/cpu/buffer.h"
#include "engine/rollout/native/cpu/states.h"
#include "engine/rollout/native/cpu/weights.h"
#include "engine/rollout/native/step.h"
#include "model/kernels/team.h"

namespace rematch {

// Shapes: T rows of a step, nk key heads, nv value heads, dv value size.

/// The delta-rule mixer of the layers of a step. Owns what it writes except states and outputs.
class CpuDeltaMixer {
 public:
  CpuDeltaMixer(const TextDescription& text, const CpuStates& states)
      : delta_(text.delta()), states_(states) {}

  /// Makes room for steps of this many rows; nothing if no layer has such a mixer.
  void reserve_rows(int64_t num_rows);
  void reserve_workers(int num_workers);
  void release() { scratch_ = {}; }

  /// One worker's share of a layer, with a barrier after the products and none at the end: writes
  /// the inputs of the last product, norm(qᵀS)·silu(z).
  /// @param layer_idx  among the layers with states
  /// @param x  normalised hidden rows
  /// @param out  [T, nv·dv]
  void mix(const Step& step, const CpuDelta& layer, int64_t layer_idx,
           const kernels::InterleavedRows& x, const kernels::Rows& out,
           const kernels::Worker& worker) const;

 private:
  struct Scratch {
    CpuBuffer<float> projected_T;      // queries, keys, values, z, b, a
    CpuBuffer<float> decay_T, beta_T;  // [T, nv]
    CpuBuffer<float> workers;
  };
  int64_t value_width() const { return delta_->value_width(); }
  int64_t projected_width() const {
    return delta_->num_channels() + value_width() + 2 * delta_->num_value_heads;
  }
  kernels::Rows projected(int64_t first_column) const {
    return {scratch_.projected_T.data() + first_column, projected_width()};
  }
  kernels::Rows decay(int64_t head) const {
    return {scratch_.decay_T.data() + head, delta_->num_value_heads};
  }
  kernels::Rows beta(int64_t head) const {
    return {scratch_.beta_T.data() + head, delta_->num_value_heads};
  }
  void compute_gates(const StepSequence& sequence, const CpuDelta& layer, int64_t key_head) const;
  void gate_outputs(const StepSequence& sequence, const CpuDelta& layer, int64_t key_head,
                    const kernels::Rows& out) const;

  const DeltaDescription* delta_;  ///< null = no layer has a state
  const CpuStates& states_;
  Scratch scratch_;
};

}  // namespace rematch
