#pragma once
#include <cstdint>

#include "model/families/description.h"
#include "plan/parameters.h"
#include "settings/tuner.h"

namespace rematch {

/// A packed row in numbers.
struct RowShape {
  int64_t num_tokens = 0;
  int64_t num_visual_tokens = 0;  ///< of them, image pads
  /// segments of several lengths: attention reads them from a copy in groups
  bool is_packed = false;

  int64_t num_patches(const VisionDescription& vision) const {
    return num_visual_tokens * vision.merge_area();
  }
};

/// How a forward pass computes.
struct Computation {
  int64_t value_bytes = 4;  ///< of weights and activations: 4 float32, 2 bfloat16
  bool on_gpu = false;
  bool checkpointing = false;  ///< `training.gradient_checkpointing`
  LoraSettings lora;           ///< of the adapters in TrainedParameters
};

/// What the passes of one row hold at most, in bytes. Scratch memory inside libraries is not
/// counted.
struct RowMemory {
  int64_t text = 0;    ///< kept by the decoder from its forward to its backward pass
  int64_t vision = 0;  ///< kept by the vision tower and its mergers
  /// of the decoder, alive for a moment of the backward pass; with checkpointing a whole layer
  int64_t text_passing = 0;
  int64_t vision_passing = 0;
};

/// What autograd keeps of a row: the inputs of every product, norm, activation and attention
/// (docs/plan.md).
RowMemory row_memory(const ModelDescription& model, const TrainedParameters& trained,
                     const Computation& computation, const RowShape& row);

}  // namespace rematch
