#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/rollout/native/step.h"
#include "model/nn/attention_choice.h"

namespace rematch {

/// Sizes of the slots of a decoding step.
struct SlotShape {
  int64_t num_rows = 0;    ///< S, at least the number of sequences; rows beyond them are padding
  int64_t num_tokens = 0;  ///< L, at least the longest context
  int64_t block_len = 0;
};

/// Pages of decoding sequences, for paged_attention(). Rows of padding see one token of page 0.
/// @param shape  its block_len is kPageTokens
PageTable page_table(const std::vector<const StepSequence*>& decodes, const SlotShape& shape,
                     const at::Device& device);

/// Slots of the cached tokens of decoding sequences [S, L], and the mask [S, 1, 1, L] that hides
/// what comes after a sequence. Made on a device from block tables and lengths, which are a
/// sixteenth of the slots. A hidden slot may hold anything finite.
/// @param options  of the mask: device and dtype
std::pair<at::Tensor, at::Tensor> device_slots(const std::vector<const StepSequence*>& decodes,
                                               const SlotShape& shape,
                                               const at::TensorOptions& options);

}  // namespace rematch
