#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace rematch {

/// Rotation angles of every position as cosines and sines, [..., head_dim]; the second half repeats
/// the first.
struct RopeTable {
  at::Tensor cos;
  at::Tensor sin;
  /// On devices: sin with the first half negated, for a rotation of three operators. Else
  /// undefined.
  at::Tensor signed_sin;
};

/// theta^(-2j/dim) for j = 0 … dim/2−1, bit for bit as PyTorch computes it in float32 (MODEL 2).
/// [dim/2], on CPU.
at::Tensor inverse_frequencies(double theta, int64_t dim);

/// The columns of a rotary table on a device; made once, so that steps copy nothing from the host.
struct RopeColumns {
  at::Tensor axis;         ///< [head_dim/2] int64: row of the positions that rotates a column
  at::Tensor frequencies;  ///< [head_dim/2] float32
};
/// @param axis_of_pair  [head_dim/2]: which of the rows t, h, w rotates a column
RopeColumns rope_columns(double theta, const std::vector<int64_t>& axis_of_pair, at::Device device);

/// @param positions  [3, ...] int64, rows t, h, w; moved to the columns' device
/// @return           tables [..., head_dim] computed in float32, then cast to `dtype`
RopeTable rope_table(const at::Tensor& positions, const RopeColumns& columns, at::ScalarType dtype);

/// Rotary table of vision patches (MODEL 3.3), float32 [N, head_dim].
/// @param coordinates  [N, 2] int64: row and column of each patch
RopeTable vision_rope_table(const at::Tensor& coordinates, double theta, int64_t head_dim,
                            at::Device device);

/// Rotates halves (NeoX): x·cos + rotate_half(x)·sin, in the promoted dtype of x and the table.
/// @param x  [..., heads, head_dim] with the table's leading shape
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table);

/// Rotates queries and keys, [..., heads, head_dim] each; the numbers of heads may differ. A device
/// takes three operators for both, which then share their memory.
std::pair<at::Tensor, at::Tensor> apply_rope(const at::Tensor& q, const at::Tensor& k,
                                             const RopeTable& table);

}  // namespace rematch
