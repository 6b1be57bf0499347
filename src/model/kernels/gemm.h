#pragma once
#include <cstdint>

#include "model/kernels/types.h"

namespace rematch::kernels {

// Shapes: M rows of activations, K inputs, N outputs.

/// A matrix in training layout: [N, K], row-major.
struct Matrix {
  const void* data = nullptr;
  Storage storage = Storage::kFloat;
  int64_t num_outputs = 0;  ///< N
  int64_t num_inputs = 0;   ///< K
};

/// Outputs per panel; they are adjacent in packed weights. Workers' shares are whole panels.
inline constexpr int64_t kPanel = 32;

/// A matrix in the order in which products read it: panels of kPanel outputs, [ceil(N / kPanel), K,
/// kPanel], zeros after the last output. One step along K loads a panel with one or two
/// instructions, and no sum over lanes is needed.
struct PackedWeights {
  const void* data = nullptr;
  Storage storage = Storage::kFloat;
  int64_t num_outputs = 0;      ///< N
  int64_t num_inputs = 0;       ///< K
  const float* bias = nullptr;  ///< [N]; null = none
};

constexpr int64_t num_panels(int64_t num_outputs) { return (num_outputs + kPanel - 1) / kPanel; }

/// Unit of a worker's share of outputs (Worker::share): two panels, which are multiplied together
/// when there are few rows; one if shares would be uneven otherwise.
constexpr int64_t share_unit(int64_t num_outputs, int num_workers) {
  return num_outputs >= 16 * kPanel * num_workers ? 2 * kPanel : kPanel;
}

/// Bytes of packed weights.
constexpr int64_t packed_bytes(int64_t num_outputs, int64_t num_inputs, Storage storage) {
  return num_panels(num_outputs) * kPanel * num_inputs * storage_bytes(storage);
}

/// Packs the given panels of the stacked matrices `parts` (same K and storage) into `packed`, which
/// has room for all panels. Cost: reads and writes each value once.
void pack(const Matrix* parts, int num_parts, Range panels, void* packed);

/// Destination of a product.
enum class Into {
  kStore,  ///< y = x·wᵀ + bias
  kAdd,    ///< y = y + (x·wᵀ + bias): residuals
};

/// Rows of x in the order in which products read them: groups of adjacent rows, each [K, rows of
/// the group]. The size of a group depends on the instruction set and the number of rows; a single
/// row needs no reordering.
struct InterleavedRows {
  float* data = nullptr;   ///< [M · K]
  int64_t num_rows = 0;    ///< M
  int64_t num_inputs = 0;  ///< K
};

/// Writes the given rows and columns of x [M, K] to their place in `out`; workers divide a matrix
/// by rows or columns. Cost: reads and writes each value once.
void interleave(const ConstRows& x, Range rows, Range columns, const InterleavedRows& out);

/// Computes the given columns of y [M, N] from x [M, K].
///
/// The bits of an output depend only on its row of x and its row of w, not on M, the other columns
/// or the worker. (They do depend on whether the instruction set has a fused multiply-add.) Cost:
/// reads w from memory once for any M.
/// @param columns  begins at a multiple of kPanel; ends at one, or at N
void gemm(const PackedWeights& w, const InterleavedRows& x, const Rows& y, Range columns,
          Into into = Into::kStore);

}  // namespace rematch::kernels
