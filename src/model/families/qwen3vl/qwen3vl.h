#pragma once
#include "model/families/family.h"

namespace rematch {

/// Dense Qwen3-VL (MODEL 1–4): pre-norm decoder with head norms and interleaved mRoPE; a vision
/// tower of LayerNorm blocks with learned positions; some blocks also feed the first text layers
/// (DeepStack).
Family qwen3vl_family();

}  // namespace rematch
