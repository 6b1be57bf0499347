#include <c10/core/GradMode.h>

#include <vector>

#include "mstep/optim/adamw.h"

namespace rematch {

at::Tensor gradient_norm(const at::Tensor& grad) {
  return at::linalg_vector_norm(grad, 2, std::nullopt, false, at::kFloat);
}

double clip_to_norm(const at::Tensor& norms, const std::vector<at::Tensor>& grads,
                    double max_norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor total = at::linalg_vector_norm(norms, 2);
  if (!(max_norm > 0)) return total.item<double>();
  const at::Tensor coefficient =
      at::clamp_max(at::div(at::full_like(total, max_norm), at::add(total, 1e-6)), 1.0);
  const at::Tensor on_host = at::stack({total, coefficient}).cpu();  // one transfer for both
  // Multiplying by one is exact; skipping it is equivalent and cheaper.
  if (on_host[1].item<double>() != 1.0) {
    for (const at::Tensor& grad : grads) grad.mul_(coefficient);
  }
  return on_host[0].item<double>();
}

double clip_grad_norm(const std::vector<ParameterGroup>& groups, double max_norm) {
  std::vector<at::Tensor> grads;
  std::vector<at::Tensor> norms;
  for (const ParameterGroup& group : groups) {
    for (const at::Tensor& parameter : group.parameters) {
      if (!parameter.grad().defined()) continue;
      grads.push_back(parameter.grad());
      norms.push_back(gradient_norm(parameter.grad()));
    }
  }
  return grads.empty() ? 0.0 : clip_to_norm(at::stack(norms), grads, max_norm);
}

}  // namespace rematch
