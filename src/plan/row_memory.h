#pragma once
#include <cstdint>
#include <list>

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
};

/// How a forward pass computes.
struct Computation {
  int64_t value_bytes = 4;  ///< of weights and activations: 4 float32, 2 bfloat16
  bool on_gpu = false;
  bool checkpointing = false;  ///< `training.gradient_checkpointing`
  LoraSettings lora;           ///< of the adapters in TrainedParameters

  bool operator==(const Computation&) const = default;
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

/// Measures rows by passes of the real model on the meta device (plan/meta_memory.h).
class RowMeter {
 public:
  /// @param model  the same at every call. Cost: a tenth of a second for a new way to train it;
  /// then none
  RowMemory measure(const ModelDescription& model, const TrainedParameters& trained,
                    const Computation& computation, const RowShape& row);

  /// Bytes: a + b · tokens + c · visual tokens.
  struct Plane {
    double a = 0, b = 0, c = 0;
    int64_t at(int64_t num_tokens, int64_t num_visual_tokens) const;
  };

 private:
  struct Way {
    TrainedParameters trained;
    Computation computation;
    bool is_packed = false;
    Plane text, text_passing, vision, vision_passing;
  };
  const Way& measured(const ModelDescription& model, const TrainedParameters& trained,
                      const Computation& computation, bool is_packed);

  std::list<Way> ways_;
};

}  // namespace rematch
