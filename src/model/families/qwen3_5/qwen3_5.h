#pragma once
#include "model/families/family.h"

namespace rematch {

/// Dense Qwen3.5, also the model type of Qwen3.6 and 3.8 (MODEL 13): most decoder layers mix tokens
/// by a gated delta rule, the others by attention with an output gate and a partial rotation; norms
/// are zero-centred; Qwen3-VL's vision tower without DeepStack.
Family qwen3_5_family();

}  // namespace rematch
