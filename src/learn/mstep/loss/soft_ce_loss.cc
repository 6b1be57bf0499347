// Soft cross-entropy of a coord slot: −Σ q·log p over the bins (BEHAVIOUR 8.2).
#include "learn/mstep/loss/coord_logits.h"
#include "learn/mstep/loss/loss_table.h"

namespace rematch {
namespace {

at::Tensor soft_cross_entropy_K(LossChunk& chunk, double weight) {
  CoordLogits& coord = chunk.shared<CoordLogits>();
  if (chunk.needs_gradient) coord.add_to_bins(at::sub(coord.p_KB, coord.target_KB), weight);
  return at::mul(coord.target_KB, coord.log_p_KB).sum(1).neg();
}

}  // namespace

LossTerm soft_cross_entropy_term() {
  return coord_term("soft_ce", kSoftCeWeight, soft_cross_entropy_K);
}

}  // namespace rematch
