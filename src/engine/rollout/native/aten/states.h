#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  /// One row of every sequence that has one.
  struct Next {
    at::Tensor rows_S;   ///< undefined = all rows of the step, in order
    at::Tensor slots_S;  ///< undefined = no sequence has one row
  } next;
  at::Tensor empty_slots;  ///< to set to 0 first; undefined = none
  /// Sequences with several rows, which go through the delta rule in chunks from the states that
  /// they have.
  struct Several {
    at::Tensor rows, slots;
    at::Tensor slots_by_chunks;  ///< slots in the order of chunks->segment_order()
    std::shared_ptr<const ChunkPlan> chunks;
    // Indices into the windows [S · (J − 1)] of their slots followed by the rows of the step:
    at::Tensor conv_inputs;  ///< the inputs of the convolution, in slots
    at::Tensor new_windows;  ///< [S · (J − 1)] the last inputs of each sequence
    at::Tensor conv_slots;   ///< of spaced_rows()
  };
  std::optional<Several> several;
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
  /// Remembers the states in slots; the function puts them back.
  std::function<void()> remember(const at::Tensor& slots);

 private:
  AtenStatePlan::Several plan_several(const std::vector<const StepSequence*>& sequences) const;
  void run(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan::Several& several,
           at::Tensor& out);
  at::Tensor step(int64_t layer_idx, const DeltaTokens& tokens, const AtenStatePlan::Next& next);

  int64_t num_layers_;
  int64_t num_taps_;
  at::Device device_;
  StateCache cache_;
};

}  // namespace rematch
