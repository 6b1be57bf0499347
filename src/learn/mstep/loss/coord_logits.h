#pragma once
#include "learn/mstep/loss/loss_term.h"

namespace rematch {

// Shapes: K slots, V vocabulary, B = 1000 bins.

/// A term on coord slots, with the settings that all of them share.
LossTerm coord_term(const char* name, const LossKey& weight,
                    at::Tensor (*values_K)(LossChunk& chunk, double weight));

/// Target distribution of each slot: a Gaussian at its bin, truncated beyond target_truncate,
/// renormalised, without wrapping.
/// @param bins_K  int64, 0..999
/// @return        [K, B] float64, rows sum to 1
at::Tensor coord_targets_KB(const at::Tensor& bins_K, const LossOptions& options);

/// Logits of a chunk, shared by the terms on coord slots (BEHAVIOUR 8.2): sanitised (NaN → 0, ±inf
/// → ±1e4, clamped to ±1e4), divided by the temperature, as one distribution over the bins and one
/// over the vocabulary. The exponentials over the vocabulary are float32 (shifted by the row
/// maximum); everything over bins and every sum is float64, because the gate loss is a difference
/// of two large numbers. Cost: three float32 copies of [K, V] at the peak, one kept.
class CoordLogits : public LossChunk::Shared {
 public:
  explicit CoordLogits(const LossChunk& chunk);

  at::Tensor target_KB;        ///< q
  at::Tensor log_p_KB, p_KB;   ///< softmax over the bins
  at::Tensor logsumexp_K;      ///< over the bins
  at::Tensor logsumexp_all_K;  ///< over the vocabulary
  /// sum of the exponentials over the vocabulary, shifted by the row maximum
  at::Tensor sum_all_K;

  /// Adds weight · grad_KB to the gradient with respect to the bins' logits / temperature.
  void add_to_bins(at::Tensor grad_KB, double weight);
  /// Adds factor · the shifted exponentials to the gradient with respect to all logits /
  /// temperature.
  void add_to_all(const at::Tensor& factor_K1);
  void add_gradient_to(LossChunk& chunk) override;

 private:
  at::Tensor ids_B_, exp_KV_;
  at::Tensor grad_KB_, factor_K1_;
  double temperature_;
};

}  // namespace rematch
