#pragma once
#include <ATen/ATen.h>

#include <array>

#include "mstep/loss/losses.h"

namespace rematch {

// Shapes: K slots, V vocabulary, B = 1000 bins.

/// Which half of a pair of sums: slots of the kept prefix, slots of the append text.
enum CoordSource { kCoordPrefix = 0, kCoordAppend = 1 };

/// Coordinate losses of K slots: unweighted component sums, weighted sums by source, and what a backward pass needs.
struct CoordChunk {
  double soft_ce_sum = 0;
  double w1_sum = 0;
  double gate_sum = 0;
  std::array<double, 2> weighted_sum{};  ///< by CoordSource
  at::Tensor grad_KV;                    ///< d(scale · Σ weighted) / d logits in the logits' dtype; undefined unless asked for
};

/// Target distribution of each slot: a Gaussian at its bin, cut beyond target_truncate, renormalised, without wrapping.
/// @param bins_K  int64, 0..999
/// @return        [K, B] float64, rows sum to 1
at::Tensor coord_targets_KB(const at::Tensor& bins_K, const LossOptions& options);

/// NaN → 0, ±inf → ±1e4, clamped to ±1e4 (BEHAVIOUR 8.2). Returns a new float32 tensor.
at::Tensor sanitise_logits(const at::Tensor& logits);

/// Coordinate losses of BEHAVIOUR 8.2. The vocabulary-wide exponentials are float32 (shifted by the row maximum), everything over bins and
/// every sum is float64: the gate is a difference of two large numbers.
/// @param logits_KV    any floating dtype, cast to float32 first
/// @param coord_ids_B  int64 vocabulary ids in bin order
/// @param bins_K       int64, 0..999
/// @param is_prefix_K  bool, slot taught in the kept prefix
/// @param scale        multiplies the gradient
/// Cost: three float32 copies of [K, V] at the peak, one kept when needs_grad.
CoordChunk coord_chunk(const at::Tensor& logits_KV, const at::Tensor& coord_ids_B, const at::Tensor& bins_K, const at::Tensor& is_prefix_K,
                       const LossOptions& options, double scale, bool needs_grad);

}  // namespace rematch
