#include "learn/mstep/optim/float32_gradients.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace rematch {
namespace {

// Runs after autograd has written a parameter's .grad: moves it into the float32 sum.
class TakeGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit TakeGradient(std::shared_ptr<at::Tensor> sum) : sum_(std::move(sum)) {}
  void operator()(const at::Tensor& parameter) override {
    const at::NoGradGuard no_grad;
    if (sum_->defined()) {
      sum_->add_(parameter.grad());
    } else {
      *sum_ = parameter.grad().to(at::kFloat);
    }
    parameter.mutable_grad().reset();
  }

 private:
  std::shared_ptr<at::Tensor> sum_;
};

}  // namespace

Float32Gradients::Float32Gradients(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    for (const at::Tensor& parameter : group.parameters) {
      if (parameter.scalar_type() == at::kFloat) continue;
      auto value = std::make_shared<at::Tensor>();
      torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                     std::make_unique<TakeGradient>(value));
      sums_.push_back({parameter, std::move(value)});
    }
  }
}

Float32Gradients::~Float32Gradients() {
  for (const Sum& sum : sums_)
    torch::autograd::impl::set_post_acc_grad_hooks(sum.parameter, nullptr);
}

void Float32Gradients::publish() {
  for (const Sum& sum : sums_) {
    sum.parameter.mutable_grad() = std::exchange(*sum.value, at::Tensor());
  }
}

void Float32Gradients::discard() {
  for (const Sum& sum : sums_) sum.value->reset();
}

}  // namespace rematch
