#pragma once
#include <cstdint>

#include "kernels/types.h"

namespace rematch::kernels {

// Shapes: M rows of activations, K inputs, N outputs.

/// A matrix as training stores it: [N, K], row by row.
struct Matrix {
  const void* data = nullptr;
  Storage storage = Storage::kFloat;
  int64_t num_outputs = 0;  ///< N
  int64_t num_inputs = 0;   ///< K
};

/// Outputs of a panel, which are adjacent in packed weights. Shares of workers are multiples of it.
inline constexpr int64_t kPanel = 32;

/// A matrix in the order that products read it: panels of kPanel outputs, [ceil(N / kPanel), K,
/// kPanel], zeros after the last output. Each step along K is one or two loads for a whole panel;
/// no sum over lanes is ever needed.
struct PackedWeights {
  const void* data = nullptr;
  Storage storage = Storage::kFloat;
  int64_t num_outputs = 0;      ///< N
  int64_t num_inputs = 0;       ///< K
  const float* bias = nullptr;  ///< [N]; null = none
};

constexpr int64_t num_panels(int64_t num_outputs) { return (num_outputs + kPanel - 1) / kPanel; }

/// Unit of a worker's outputs (Worker::share_of): two panels, which are multiplied side by side
/// when rows are few, unless shares would be uneven.
constexpr int64_t run_of_panels(int64_t num_outputs, int num_workers) {
  return num_outputs >= 16 * kPanel * num_workers ? 2 * kPanel : kPanel;
}

/// Bytes of packed weights.
constexpr int64_t packed_bytes(int64_t num_outputs, int64_t num_inputs, Storage storage) {
  return num_panels(num_outputs) * kPanel * num_inputs * storage_bytes(storage);
}

/// Writes panels `panels` of the stacked matrices `parts` (all with the same K and storage) to
/// `packed`, which has room for all panels. Cost: reads and writes each value once.
void pack(const Matrix* parts, int num_parts, Range panels, void* packed);

/// What to do with a product.
enum class Into {
  kStore,  ///< y = x·wᵀ + bias
  kAdd,    ///< y = y + (x·wᵀ + bias): residuals
};

/// Rows of x in the order that products read them, one stream: groups of neighbouring rows, [K,
/// rows of the group] each. The size of a group depends on the instruction set and the number of
/// rows; a single row needs no reordering.
struct InterleavedRows {
  float* data = nullptr;   ///< [M · K]
  int64_t num_rows = 0;    ///< M
  int64_t num_inputs = 0;  ///< K
};

/// Writes columns `columns` of rows `rows` of x [M, K] to their place in `out`: workers share a
/// matrix by rows or by columns. Cost: reads and writes each value once.
void interleave(const ConstRows& x, Range rows, Range columns, const InterleavedRows& out);

/// Computes columns `columns` of y [M, N] from x [M, K].
///
/// The bits of each output depend on its row of x and its row of w alone: not on M, nor on the
/// columns computed with it, nor on the worker. (They do depend on whether the instruction set has
/// a fused multiply-add.) Cost: w is read from memory once, whatever M.
/// @param columns  begins at a multiple of kPanel and ends at one, or at N
void gemm(const PackedWeights& w, const InterleavedRows& x, const Rows& y, Range columns,
          Into into = Into::kStore);

}  // namespace rematch::kernels
