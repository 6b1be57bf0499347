#pragma once
#include "model/families/family.h"

namespace rematch {

/// Qwen2.5-VL (MODEL 12): pre-norm decoder with biases on queries, keys and values and mRoPE in
/// sections; a vision tower of RMSNorm blocks with gated MLPs, mostly with window attention.
Family qwen2_5vl_family();

}  // namespace rematch
