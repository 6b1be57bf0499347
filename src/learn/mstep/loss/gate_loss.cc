// The gate loss of a coord slot, −log of the mass on coord tokens: max(0, logsumexp(all) −
// logsumexp(coord)) (BEHAVIOUR 8.2).
#include "learn/mstep/loss/coord_logits.h"
#include "learn/mstep/loss/loss_table.h"

namespace rematch {
namespace {

at::Tensor gate_loss_K(LossChunk& chunk, double weight) {
  CoordLogits& coord = chunk.shared<CoordLogits>();
  at::Tensor gate_K = at::sub(coord.logsumexp_all_K, coord.logsumexp_K).clamp_min_(0.0);
  if (chunk.needs_gradient) {
    const at::Tensor is_open_K1 = gate_K.gt(0.0).unsqueeze(1);
    coord.add_to_all(at::div(is_open_K1, coord.sum_all_K.unsqueeze(1)).mul_(weight));
    coord.add_to_bins(at::mul(coord.p_KB, is_open_K1), -weight);
  }
  return gate_K;
}

}  // namespace

LossTerm gate_term() { return coord_term("gate", kGateWeight, gate_loss_K); }

}  // namespace rematch
