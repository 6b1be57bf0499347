// Cross-entropy in float32 with sums in float64; logits are not sanitised, so NaN stays NaN
// (BEHAVIOUR 8.1, 8.2). Cost: two float32 copies of [K, V] at the peak.
#include "learn/mstep/loss/loss_table.h"
#include "learn/mstep/loss/losses.h"

namespace rematch {
namespace {

at::Tensor cross_entropy_K(LossChunk& chunk, double weight) {
  const at::Tensor x_KV = chunk.logits_KV.to(at::kFloat);
  const auto [max_K, argmax_K] = x_KV.max(1);
  const at::Tensor labels_K1 = chunk.targets_K.unsqueeze(1);
  // The exponentials are shifted by the row maximum, so float32 is exact enough; only the long sum
  // over the vocabulary needs float64.
  at::Tensor exp_KV = at::sub(x_KV, max_K.unsqueeze(1)).exp_();
  const at::Tensor sum_K = exp_KV.sum(1, false, at::kDouble);
  const at::Tensor label_logit_K = x_KV.gather(1, labels_K1).squeeze(1);
  const at::Tensor loss_K = sum_K.log() + (max_K.to(at::kDouble) - label_logit_K.to(at::kDouble));
  chunk.add_sum(kCorrectTokens, argmax_K.eq(chunk.targets_K).sum().to(at::kDouble));
  if (chunk.needs_gradient) {
    const double scale = chunk.scale * weight;
    exp_KV.mul_(sum_K.reciprocal().mul_(scale).to(at::kFloat).unsqueeze(1));
    exp_KV.scatter_add_(1, labels_K1, at::full_like(labels_K1, -scale, exp_KV.options()));
    chunk.add_gradient(std::move(exp_KV));
  }
  return loss_K;
}

}  // namespace

LossTerm cross_entropy_term() {
  return {.name = "ce", .kind = kLabels, .values_K = cross_entropy_K};
}

}  // namespace rematch
