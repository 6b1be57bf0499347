#include "learn/mstep/loss/head_gradients.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/nn/affine.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Gradients for the backward pass.
struct Sums : torch::CustomClassHolder {
  variable_list gradients;
};

// A scalar with known gradients with respect to its inputs.
struct KnownGradients : torch::autograd::Function<KnownGradients> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& value,
                            at::TensorList /*inputs*/, const c10::intrusive_ptr<Sums>& sums) {
    ctx->saved_data["sums"] = c10::IValue::make_capsule(sums);
    return value.clone();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto sums = c10::static_intrusive_pointer_cast<Sums>(ctx->saved_data["sums"].toCapsule());
    REMATCH_CHECK(!sums->gradients.empty(), "the loss of a row is differentiated once");
    variable_list gradients{at::Tensor()};  // of value
    // Moved out, so that a parameter takes the tensor itself as its .grad.
    for (at::Tensor& gradient : sums->gradients) gradients.push_back(std::move(gradient));
    sums->gradients.clear();
    gradients.emplace_back();  // of sums
    const at::Tensor& factor = grads.front();
    if (factor.device().is_cpu() && factor.item<double>() == 1.0) return gradients;
    for (at::Tensor& gradient : gradients) {
      if (gradient.defined()) gradient.mul_(factor);
    }
    return gradients;
  }
};

}  // namespace

HeadGradients::HeadGradients(at::Tensor hidden_TH, const Head& head)
    : hidden_TH_(std::move(hidden_TH)), head_(head) {
  if (head.weight_VH.defined() && head.weight_VH.requires_grad())
    parameters_.push_back(head.weight_VH);
  for (const at::Tensor& tensor : head.parameters) {
    if (tensor.requires_grad()) parameters_.push_back(tensor);
  }
  parameter_sums_.resize(parameters_.size());
  are_needed_ = at::GradMode::is_enabled() && (hidden_TH_.requires_grad() || !parameters_.empty());
  is_product_ = are_needed_ && head.weight_VH.defined() && head.weight_VH.requires_grad() &&
                head.weight_VH.scalar_type() == at::kFloat;
}

at::Tensor HeadGradients::logits_KV(const at::Tensor& rows_K) {
  rows_K_ = rows_K;
  hidden_KH_ = hidden_TH_.detach().index_select(0, rows_K);
  if (is_product_) {
    const at::NoGradGuard no_grad;
    return head_.logits_KV(hidden_KH_);
  }
  hidden_KH_.set_requires_grad(are_needed_ && hidden_TH_.requires_grad());
  const at::Tensor logits_KV = head_.logits_KV(hidden_KH_);
  if (are_needed_) logits_KV_ = logits_KV;
  return logits_KV.detach();
}

void HeadGradients::add_hidden(const at::Tensor& grad_KH) {
  if (!hidden_sum_TH_.defined()) hidden_sum_TH_ = at::zeros_like(hidden_TH_);
  hidden_sum_TH_.index_add_(0, rows_K_, grad_KH);
}

// Adds gradᵀ·hidden to the weight's gradient, some rows at a time, which avoids a second matrix of
// the head's size.
void HeadGradients::add_product(const at::Tensor& grad_KV) {
  constexpr int64_t kRows = 8192;
  at::Tensor& sum_VH = parameter_sums_[0];
  if (!sum_VH.defined()) sum_VH = at::zeros_like(head_.weight_VH, at::MemoryFormat::Contiguous);
  for (int64_t first = 0; first < sum_VH.size(0); first += kRows) {
    const int64_t count = std::min(kRows, sum_VH.size(0) - first);
    sum_VH.narrow(0, first, count)
        .add_(product_MN(grad_KV.narrow(1, first, count).t().contiguous(), hidden_KH_.t()));
  }
  if (hidden_TH_.requires_grad()) add_hidden(product_MN(grad_KV, head_.weight_VH.t()));
}

void HeadGradients::add_through_graph(const at::Tensor& grad_KV) {
  variable_list inputs = parameters_;
  if (hidden_KH_.requires_grad()) inputs.push_back(hidden_KH_);
  // The graph is retained because chunks may share a piece of it; the rest is freed with the
  // chunk's logits.
  const variable_list found = torch::autograd::grad({std::exchange(logits_KV_, {})}, inputs,
                                                    {grad_KV}, /*retain_graph=*/true,
                                                    /*create_graph=*/false, /*allow_unused=*/true);
  const at::NoGradGuard no_grad;
  if (hidden_KH_.requires_grad() && found.back().defined()) add_hidden(found.back());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!found[i].defined()) continue;
    if (parameter_sums_[i].defined()) {
      parameter_sums_[i].add_(found[i]);
    } else {
      parameter_sums_[i] = found[i].to(at::kFloat);
    }
  }
}

void HeadGradients::add(const at::Tensor& grad_KV) {
  REMATCH_CHECK(are_needed_, "a head without gradients");
  if (is_product_) {
    const at::NoGradGuard no_grad;
    add_product(grad_KV);
  } else {
    add_through_graph(grad_KV);
  }
}

at::Tensor HeadGradients::attach(const at::Tensor& value) {
  if (!are_needed_) return value;
  auto sums = c10::make_intrusive<Sums>();
  sums->gradients.push_back(std::move(hidden_sum_TH_));
  variable_list inputs{hidden_TH_};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    inputs.push_back(parameters_[i]);
    at::Tensor sum = std::move(parameter_sums_[i]);
    sums->gradients.push_back(sum.defined() ? sum.to(parameters_[i].scalar_type()) : sum);
  }
  return KnownGradients::apply(value, at::TensorList(inputs), sums);
}

}  // namespace rematch
