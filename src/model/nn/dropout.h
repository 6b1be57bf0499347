#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

/// x with each value set to zero with probability `dropout`, the others divided by 1 − dropout
/// (rounded to float32 first, like the scale of torch's dropout), in x's dtype. Differentiable;
/// keeps no mask: the backward pass draws it again.
///
/// On a CPU a value's fate depends on the seed, its row (the last dimension is one) and its place
/// in the row alone: not on threads, the processor or x's dtype. Cost: one pass over x, at the
/// speed of memory. Another device draws for itself: the same seed drops the same values there,
/// nothing is uploaded, and its generator stays as it was.
/// @param x        float32 or bfloat16 on a CPU, any float dtype elsewhere
/// @param dropout  in [0, 1)
at::Tensor seeded_dropout(const at::Tensor& x, double dropout, uint64_t seed);

}  // namespace rematch
