#include "learn/mstep/loss/loss_term.h"

#include "base/error.h"

namespace rematch {

double LossOptions::value(const LossKey& key) const {
  const auto found = settings.find(key.name);
  return found == settings.end() ? key.fallback : found->second;
}

void LossChunk::add_gradient(at::Tensor grad_KV) {
  grad_KV_ = grad_KV_.defined() ? grad_KV_.add_(grad_KV) : std::move(grad_KV);
}

at::Tensor LossChunk::take_gradient() {
  for (const auto& shared : shared_) shared->add_gradient_to(*this);
  shared_.clear();
  REMATCH_CHECK(grad_KV_.defined(), "no term has a gradient");
  return std::exchange(grad_KV_, {}).to(logits_KV.scalar_type());
}

}  // namespace rematch
