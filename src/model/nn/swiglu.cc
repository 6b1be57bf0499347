#include "model/nn/swiglu.h"

#include <torch/csrc/autograd/custom_function.h>

#include "model/nn/device_kernels.h"

namespace rematch {
namespace {

struct SwiGlu : torch::autograd::Function<SwiGlu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    return at::silu(gate).mul_(up);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &g = gradients[0];
    return {at::silu_backward(g * up, gate), at::silu(gate).mul_(g)};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return uses_device_kernels(gate.device()) ? SwiGlu::apply(gate, up) : at::silu(gate) * up;
}

}  // namespace rematch
