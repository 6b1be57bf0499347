// A separate loss in one file: it pushes down the logit of the target token at "toy" slots.
#include "learn/mstep/loss/loss_table.h"

namespace rematch {
namespace {

constexpr LossKey kWeight{
    .name = "toy_weight", .fallback = 0, .meaning = "weight of the toy loss; 0 is off"};
constexpr LossKey kMargin{
    .name = "toy_margin", .fallback = 0, .low = -100, .meaning = "added to the logit"};

// softplus(logit + margin)
at::Tensor values_K(LossChunk& chunk, double weight) {
  const at::Tensor targets_K1 = chunk.targets_K.unsqueeze(1);
  const at::Tensor x_K1 =
      chunk.logits_KV.gather(1, targets_K1).to(at::kDouble) + chunk.options.value(kMargin);
  if (chunk.needs_gradient) {
    const at::Tensor grad_K1 = x_K1.sigmoid() * (weight * chunk.scale);
    chunk.add_gradient(
        at::zeros(chunk.logits_KV.sizes(), chunk.logits_KV.options().dtype(at::kFloat))
            .scatter_add_(1, targets_K1, grad_K1.to(at::kFloat)));
  }
  return at::softplus(x_K1.squeeze(1));
}

[[maybe_unused]] const bool kAdded = add_loss_term({.name = "toy_push",
                                                    .kind = "toy",
                                                    .weight = kWeight,
                                                    .keys = {kMargin},
                                                    .values_K = values_K});

}  // namespace
}  // namespace rematch
