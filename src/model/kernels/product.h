#pragma once
#include <cstdint>

namespace rematch::kernels {

/// A float32 matrix with any strides; one of them is 1 for speed.
struct Strided {
  const float* data = nullptr;
  int64_t row_stride = 0, column_stride = 1;
  float at(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

/// Rows, columns and inputs of a product.
struct ProductSize {
  int64_t rows = 0, columns = 0, inputs = 0;
};

/// c = ±a·b, or c = c ± a·b, for matrices that fit into the caches: a chunk of the delta rule. Each
/// value is one sum over the inputs in their order, so its bits depend on nothing else.
/// @param c  rows of `columns` values without gaps
/// @param adds  c holds what the product is added to
/// @param sign  1 or -1
void product(const Strided& a, const Strided& b, const ProductSize& size, float sign, bool adds,
             float* c);

}  // namespace rematch::kernels
