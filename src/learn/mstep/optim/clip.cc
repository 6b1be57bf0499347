#include <c10/core/GradMode.h>

#include <vector>

#include "learn/mstep/optim/adamw.h"
#include "model/nn/device_kernels.h"

namespace rematch {

at::Tensor gradient_norm(const at::Tensor& grad) {
  return at::linalg_vector_norm(grad, 2, std::nullopt, false, at::kFloat);
}

std::vector<at::Tensor> gradient_norms(const std::vector<at::Tensor>& grads) {
  if (!grads.empty() && uses_device_kernels(grads.front().device()))
    return at::_foreach_norm(grads, 2, at::kFloat);
  std::vector<at::Tensor> norms;
  for (const at::Tensor& grad : grads) norms.push_back(gradient_norm(grad));
  return norms;
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
    if (!grads.empty() && uses_device_kernels(grads.front().device())) {
      at::_foreach_mul_(grads, on_host[1].item<double>());
    } else {
      for (const at::Tensor& grad : grads) grad.mul_(coefficient);
    }
  }
  return on_host[0].item<double>();
}

double clip_grad_norm(const std::vector<ParameterGroup>& groups, double max_norm) {
  std::vector<at::Tensor> grads;
  for (const ParameterGroup& group : groups) {
    for (const at::Tensor& parameter : group.parameters) {
      if (!parameter.grad().defined()) continue;
      grads.push_back(parameter.grad());
    }
  }
  const std::vector<at::Tensor> norms = gradient_norms(grads);
  return grads.empty() ? 0.0 : clip_to_norm(at::stack(norms), grads, max_norm);
}

}  // namespace rematch
