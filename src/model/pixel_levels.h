#pragma once
#include <ATen/core/Tensor.h>

namespace rematch {

/// Values of grey levels, on their device: the bits that cut_into_patches() computes on the host.
/// @param levels_NC    uint8 [N, 3·patch²], one frame
/// @param values_C256  float32 [3, 256] on the same device
/// @param num_frames   equal frames of a patch
/// @return float32 [N, 3·num_frames·patch²]
at::Tensor values_of_levels(const at::Tensor& levels_NC, const at::Tensor& values_C256,
                            int64_t num_frames);

}  // namespace rematch
