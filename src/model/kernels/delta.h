#pragma once
#include <cstdint>

#include "model/kernels/gemm.h"
#include "model/kernels/types.h"

namespace rematch::kernels {

// Gated delta rule with its causal convolution, for one sequence and one key head with its group of
// value heads. Shapes: dk key size, dv value size, G value heads of the key head, C =
// DeltaShape::channels().
//
// State of a value head after token t, [dk, dv]: S = e^g·S + k·(β·(v − kᵀ·(e^g·S)))ᵀ; output Sᵀ·q.
//
// Tokens are grouped into chunks of kDeltaChunk from position 0. A matrix S holds whole chunks
// only; the tokens after them are kept as keys and as the vectors u = β·(v − kᵀ·(e^g·S)) that they
// add: S_t = e^(G_t)·S + Σ_j e^(G_t − G_j)·k_j·u_jᵀ, where G is the sum of g from the start of the
// chunk. One token and a whole prompt are computed in this form and in the same order, so both give
// the same bits, S is written once per chunk, and tokens that turn out to be wrong drafts leave S
// as it was.

/// Tokens that are added to the matrices together.
inline constexpr int64_t kDeltaChunk = 16;
/// Positions whose keys and vectors are kept: two chunks, so that drafts may begin the next chunk.
inline constexpr int64_t kDeltaRing = 2 * kDeltaChunk;
/// Positions whose inputs of the convolution are kept.
inline constexpr int64_t kDeltaWindow = 16;
/// Taps of the convolution.
inline constexpr int64_t kDeltaTaps = 4;
/// Most drafts after a token: the window must still reach back from the first one when all are
/// wrong.
inline constexpr int64_t kMaxDeltaDrafts = kDeltaWindow - kDeltaTaps;
static_assert(kDeltaRing == kPanel, "the kept keys are one panel of outputs");

/// Sizes of a key head with its value heads.
struct DeltaShape {
  int64_t key_dim = 0;    ///< dk
  int64_t value_dim = 0;  ///< dv
  int64_t group = 1;      ///< G

  /// Channels of the convolution: query, key, values of G heads.
  int64_t channels() const { return 2 * key_dim + group * value_dim; }
  /// dv, rounded up to whole panels.
  int64_t padded_value_dim() const { return num_panels(value_dim) * kPanel; }
  int64_t matrix_floats() const { return key_dim * padded_value_dim(); }
  /// Floats of the state: keys, convolution window, and per value head its matrix, vectors and
  /// decays. Does not depend on the length of the sequence.
  int64_t state_floats() const {
    return key_dim * kDeltaRing + kDeltaWindow * channels() +
           group * (matrix_floats() + kDeltaRing * padded_value_dim() + kDeltaRing);
  }
  /// Floats of a worker's scratch memory.
  int64_t scratch_floats() const {
    return kDeltaChunk * channels() + 4 * kDeltaChunk * key_dim + 2 * kDeltaChunk * kPanel +
           2 * kDeltaChunk * padded_value_dim() + group * matrix_floats() + key_dim * kDeltaChunk +
           padded_value_dim() + 64;
  }
};

/// The next rows of a sequence in one key head.
struct DeltaTask {
  /// state_floats() of the sequence; anything for a sequence without tokens so far
  float* state = nullptr;
  int64_t num_folded = 0;      ///< tokens in the matrices, a multiple of kDeltaChunk
  int64_t first_position = 0;  ///< of row 0: tokens computed so far
  int64_t num_rows = 0;
  /// The first rows, ≥ 1, which are certain; at most kMaxDeltaDrafts drafts follow.
  int64_t num_known = 0;
  /// Inputs of the convolution: rows of queries (all key heads), keys (all) and values (all), and
  /// the first column of this head in each.
  ConstRows inputs;
  int64_t query_column = 0, key_column = 0, value_column = 0;
  ConstRows taps;   ///< [kDeltaTaps, columns of `inputs`], oldest token first
  ConstRows decay;  ///< g of each row, ≤ 0: [rows, G]
  ConstRows beta;   ///< β of each row: [rows, G]
  Rows out;         ///< outputs, [rows, G·dv]
};

/// Number of tokens in the matrices after a task: whole chunks before its last certain row.
constexpr int64_t delta_folded(int64_t first_position, int64_t num_known) {
  return (first_position + num_known - 1) / kDeltaChunk * kDeltaChunk;
}

/// Computes the outputs of all rows and the state after them. If drafts turn out to be wrong, the
/// state still serves: the next task begins at the first wrong position.
///
/// The bits of an output depend only on the tokens up to its row, not on the division of a sequence
/// into tasks.
/// @param scratch  scratch_floats() of this worker, valid only during the call
void delta(const DeltaShape& shape, const DeltaTask& task, float* scratch);

}  // namespace rematch::kernels
