#pragma once
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/families/description.h"

namespace rematch {

// Shared by the families of the Qwen3 generation. All functions that read keys throw UserError
// (data) naming the key.

/// Interleaved mRoPE: pair j rotates with h (j%3 == 1, j < 3·section[1]), w (j%3 == 2, j <
/// 3·section[2]) or t.
/// @param rope  reads `mrope_section`, three numbers
std::vector<int64_t> read_interleaved_axes(JsonFields& rope, std::vector<int64_t> default_section,
                                           int64_t num_pairs);

/// The vision tower of LayerNorm blocks with learned positions and its merger, without DeepStack.
VisionDescription read_qwen3_vision(JsonFields& fields);

/// A merger.
/// @param norm_after_shuffle  as in MergerDescription
MergerDescription qwen3_merger(const VisionDescription& vision, const std::string& module,
                               int64_t out_width, bool norm_after_shuffle);

}  // namespace rematch
