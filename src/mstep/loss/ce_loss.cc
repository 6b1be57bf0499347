#include "mstep/loss/ce_loss.h"

namespace rematch {

CeChunk ce_chunk(const at::Tensor& logits_KV, const at::Tensor& labels_K, double scale, bool needs_grad) {
  const at::Tensor x_KV = logits_KV.to(at::kFloat);
  const auto [max_K, argmax_K] = x_KV.max(1);
  const at::Tensor labels_K1 = labels_K.unsqueeze(1);
  // Shifted by the row maximum, an exponential in float32 is exact enough; the long sum over the vocabulary is what needs float64.
  at::Tensor exp_KV = at::sub(x_KV, max_K.unsqueeze(1)).exp_();
  const at::Tensor sum_K = exp_KV.sum(1, false, at::kDouble);
  const at::Tensor label_logit_K = x_KV.gather(1, labels_K1).squeeze(1);
  const at::Tensor loss_K = sum_K.log() + (max_K.to(at::kDouble) - label_logit_K.to(at::kDouble));

  const at::Tensor correct = argmax_K.eq(labels_K).sum().to(at::kDouble);
  const at::Tensor sums = at::stack({loss_K.sum(), correct}).cpu();  // one transfer for both
  CeChunk chunk;
  chunk.sum = sums[0].item<double>();
  chunk.correct_count = static_cast<int64_t>(sums[1].item<double>());
  if (needs_grad) {
    exp_KV.mul_(sum_K.reciprocal().mul_(scale).to(at::kFloat).unsqueeze(1));
    exp_KV.scatter_add_(1, labels_K1, at::full_like(labels_K1, -scale, exp_KV.options()));
    chunk.grad_KV = exp_KV.to(logits_KV.scalar_type());
  }
  return chunk;
}

}  // namespace rematch
