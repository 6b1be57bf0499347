#pragma once
#include <ATen/ATen.h>

#include <array>
#include <cstdint>

namespace rematch {

/// Rotation angles of every position as cosines and sines, [..., head_dim]; the second half repeats the first.
struct RopeTable {
  at::Tensor cos;
  at::Tensor sin;
};

/// theta^(-2j/dim) for j = 0 … dim/2−1, bit for bit as PyTorch computes it in float32 (MODEL 2). [dim/2], on CPU.
at::Tensor inverse_frequencies(double theta, int64_t dim);

/// Interleaved mRoPE (MODEL 2): column j turns with h (j%3 == 1, j < 3·section[1]), w (j%3 == 2, j < 3·section[2]) or t.
struct MropeOptions {
  double theta = 500000;
  int64_t head_dim = 128;
  std::array<int64_t, 3> section{24, 20, 20};
};

/// What mRoPE's columns are, on a device: made once, so that a step copies nothing from the host.
struct MropeColumns {
  at::Tensor axis;         ///< [head_dim/2] int64: row of the positions that turns a column
  at::Tensor frequencies;  ///< [head_dim/2] float32
};
MropeColumns mrope_columns(const MropeOptions& options, at::Device device);

/// @param positions  [3, ...] int64, rows t, h, w; moved to the columns' device
/// @return           tables [..., head_dim] computed in float32, then cast to `dtype`
RopeTable mrope_table(const at::Tensor& positions, const MropeColumns& columns, at::ScalarType dtype);

/// Rotary table of vision patches (MODEL 3.3), float32 [N, head_dim].
/// @param coordinates  [N, 2] int64: row and column of each patch
RopeTable vision_rope_table(const at::Tensor& coordinates, double theta, int64_t head_dim, at::Device device);

/// Rotates halves (NeoX): x·cos + rotate_half(x)·sin, in the promoted dtype of x and the table.
/// @param x  [..., heads, head_dim] with the table's leading shape
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table);

}  // namespace rematch
