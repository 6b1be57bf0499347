#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rematch {

// Shapes: T tokens of a row, C channels, J taps.

/// silu of a causal convolution of each channel alone, inside each segment of a varlen row: tokens
/// before a segment count as 0. Output t is Σ_j weight[:, j] · x[t − J + 1 + j], summed in float32
/// and rounded once to x's dtype before silu. Differentiable; keeps only its input.
/// @param x_TC          [T, C]
/// @param weight_C1J    [C, 1, J]
/// @param segment_lens  lengths of consecutive segments, sum T
/// @param slot_of_row   of spaced_rows(): a device then launches as much for many segments as for
/// one. Undefined: made here
at::Tensor short_conv(const at::Tensor& x_TC, const at::Tensor& weight_C1J,
                      const std::vector<int64_t>& segment_lens, const at::Tensor& slot_of_row = {});

/// Places of the rows of segments among slots, where J − 1 slots lie before each segment: [T] int64
/// on the CPU.
at::Tensor spaced_rows(const std::vector<int64_t>& segment_lens, int64_t num_taps);

/// The same convolution of rows that lie in slots, without autograd.
/// @param slots_PC     rows, and before each segment the J − 1 inputs before it
/// @param slot_of_row  of spaced_rows(), on the device of the slots
at::Tensor short_conv_in_slots(const at::Tensor& slots_PC, const at::Tensor& weight_C1J,
                               const at::Tensor& slot_of_row);

/// One more token of every sequence. Without autograd.
/// @param x_BC         [B, C]
/// @param window_BJC   [B, J − 1, C]: the inputs before x, oldest first; updated in place
at::Tensor short_conv_step(const at::Tensor& x_BC, const at::Tensor& weight_C1J,
                           const at::Tensor& window_BJC);

}  // namespace rematch
