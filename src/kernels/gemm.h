#pragma once
#include <cstdint>

#include "kernels/types.h"

namespace rematch::kernels {

// Shapes: M rows of activations, K inputs, N outputs.

/// A matrix as training keeps it: [N, K], row by row, read in place.
struct Weights {
  const void* data = nullptr;
  Storage storage = Storage::kFloat;
  int64_t num_outputs = 0;      ///< N
  int64_t num_inputs = 0;       ///< K
  const float* bias = nullptr;  ///< [N]; null = none
};

/// What becomes of a product.
enum class Into {
  kStore,  ///< y = x·wᵀ + bias
  kAdd,    ///< y = y + (x·wᵀ + bias): residuals
};

/// Computes columns `columns` of y [M, N] from x [M, K].
///
/// The bits of each output depend on its row of x and its row of w alone: not on M, not on columns computed with it, not on who computes
/// them. (They do depend on the instruction set.) Cost: one pass over the rows of w for up to a few dozen rows of x; beyond, one for each
/// block of them that stays in the L2 cache.
void gemm(const Weights& w, const ConstRows& x, int64_t num_rows, const Rows& y, Range columns, Into into = Into::kStore);

/// The number of outputs in a row that are computed together; shares of workers should be multiples of it.
inline constexpr int64_t kGemmUnit = 8;

}  // namespace rematch::kernels
