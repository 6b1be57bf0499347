// Wasserstein-1 distance between a coord slot's distribution and its target: Σ|CDF_p − CDF_q| /
// 1000 (BEHAVIOUR 8.2).
#include "base/flow/sample.h"
#include "learn/mstep/loss/coord_logits.h"
#include "learn/mstep/loss/loss_table.h"

namespace rematch {
namespace {

at::Tensor wasserstein_K(LossChunk& chunk, double weight) {
  CoordLogits& coord = chunk.shared<CoordLogits>();
  const at::Tensor cdf_gap_KB = at::sub(coord.p_KB, coord.target_KB).cumsum(1);
  if (chunk.needs_gradient) {
    // p_j enters every CDF from bin j on: dW1/dp_j = Σ_{k≥j} sign_k / 1000; from there through the
    // softmax.
    const at::Tensor reach_KB = cdf_gap_KB.sign().flip({1}).cumsum(1).flip({1}).div_(kNumBins);
    const at::Tensor mean_reach_K1 = at::mul(coord.p_KB, reach_KB).sum(1, true);
    coord.add_to_bins(at::mul(coord.p_KB, at::sub(reach_KB, mean_reach_K1)), weight);
  }
  return cdf_gap_KB.abs().sum(1).div_(kNumBins);
}

}  // namespace

LossTerm wasserstein_term() { return coord_term("w1", kW1Weight, wasserstein_K); }

}  // namespace rematch
