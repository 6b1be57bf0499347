#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/rollout/native/step.h"
#include "engine/rollout/state_cache.h"
#include "model/families/description.h"
#include "model/nn/chunk_plan.h"
#include "model/nn/delta_rule.h"

namespace rematch {

// Shapes: T rows of a step, S sequences, J taps.

/// The sequences of a step by the way in which they move their states on. Made once per step, used
/// by every layer.
struct AtenStatePlan {
  /// Rows that follow each other: one of every sequence that has one, then the rows of prompts that
  /// continue, one after the other.
  struct Next {
    at::Tensor rows_S, slots_S;
  };
  std::vector<Next> next;
  at::Tensor empty_slots;  ///< to set to 0 first; undefined = none
  /// Beginnings of prompts, several rows each, in chunks.
  std::vector<int64_t> start_lens;
  at::Tensor start_rows, start_slots;
  at::Tensor start_slots_by_chunks;  ///< in the order of chunks->segment_order()
  std::shared_ptr<const ChunkPlan> chunks;
  at::Tensor window_rows;    ///< [S · (J − 1)] last rows of beginnings, oldest first
  at::Tensor window_before;  ///< [S, J − 1, 1]: true for places before the first row
};

/// Recurrent states on ATen, addressed by slot (StepRunner), on any device.
class AtenStates {
 public:
  /// @param options  of the convolution's windows; states are float32
  AtenStates(const TextDescription& text, int64_t num_slots, const at::TensorOptions& options);

  /// Bytes of a sequence's state in all layers; 0 = the model has none.
  static int64_t bytes(const TextDescription& text, int64_t value_bytes);

  AtenStatePlan plan(const Step& step) const;
  /// Convolution and delta rule of a layer (AttentionContext::mix_by_delta).
  at::Tensor mix(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan& plan);
  void copy(int32_t from, int32_t to);

 private:
  void start(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan& plan,
             at::Tensor& out);
  void step(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan::Next& next,
            at::Tensor& out);

  int64_t num_layers_;
  int64_t num_taps_;
  at::Device device_;
  StateCache cache_;
};

}  // namespace rematch
