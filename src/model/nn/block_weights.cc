#include "model/nn/block_weights.h"

#include <torch/csrc/autograd/custom_function.h>

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Need : torch::CustomClassHolder {
  std::function<void()> call;
};

// The identity. Its backward pass runs before that of the block that computed `output`.
struct NeededBackward : torch::autograd::Function<NeededBackward> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& output,
                            const c10::intrusive_ptr<Need>& need) {
    context->saved_data["need"] = c10::IValue::make_capsule(need);
    return output.detach();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    c10::static_intrusive_pointer_cast<Need>(context->saved_data["need"].toCapsule())->call();
    return {gradients[0], {}};
  }
};

}  // namespace

at::Tensor run_block(const std::function<void()>& need, const std::function<at::Tensor()>& run) {
  if (!need) return run();
  need();
  const at::Tensor output = run();
  if (!output.requires_grad()) return output;
  auto state = c10::make_intrusive<Need>();
  state->call = need;
  return NeededBackward::apply(output, state);
}

}  // namespace rematch
