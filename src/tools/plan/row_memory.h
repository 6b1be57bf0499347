#pragma once
#include <cstdint>
#include <list>
#include <optional>

#include "base/settings/model.h"
#include "base/settings/tuner.h"
#include "model/families/description.h"
#include "tools/plan/parameters.h"

namespace rematch {

/// The size of a packed row.
struct RowShape {
  int64_t num_tokens = 0;
  int64_t num_visual_tokens = 0;  ///< image pads among them
  /// true if it has segments of several lengths, which attention copies into groups
  bool is_packed = false;
};

/// Options of the forward and backward pass.
struct Computation {
  int64_t value_bytes = 4;  ///< of weights and activations: 4 float32, 2 bfloat16
  bool on_gpu = false;
  Checkpointing checkpointing = Checkpointing::kOff;
  LoraSettings lora;                             ///< of the adapters in TrainedParameters
  std::optional<FourBitSettings> four_bit = {};  ///< Linears in 4 bits; nullopt = none

  bool operator==(const Computation&) const = default;
};

/// Peak memory of one row's passes, in bytes. Does not count scratch memory inside libraries.
struct RowMemory {
  int64_t text = 0;    ///< kept by the decoder from its forward to its backward pass
  int64_t vision = 0;  ///< kept by the vision tower and its mergers
  /// temporary, in the decoder's backward pass; with checkpointing a whole layer
  int64_t text_transient = 0;
  int64_t vision_transient = 0;
};

/// Measures rows by passes of the real model on the meta device (tools/plan/meta_memory.h).
class RowMeter {
 public:
  /// @param model  the same in every call
  /// Cost: a tenth of a second for new `trained`, `computation` or `row.is_packed`, else nothing
  RowMemory measure(const ModelDescription& model, const TrainedParameters& trained,
                    const Computation& computation, const RowShape& row);

  /// Bytes: a + b · tokens + c · visual tokens.
  struct Plane {
    double a = 0, b = 0, c = 0;
    int64_t at(int64_t num_tokens, int64_t num_visual_tokens) const;
  };

 private:
  struct Measurement {
    TrainedParameters trained;
    Computation computation;
    bool is_packed = false;
    Plane text, text_transient, vision, vision_transient;
  };
  const Measurement& find_or_measure(const ModelDescription& model,
                                     const TrainedParameters& trained,
                                     const Computation& computation, bool is_packed);

  std::list<Measurement> measurements_;
};

}  // namespace rematch
