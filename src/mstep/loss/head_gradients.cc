#include "mstep/loss/head_gradients.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "nn/affine.h"
#include "nn/graph_leaves.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Gradients on their way to the backward pass.
struct Sums : torch::CustomClassHolder {
  variable_list gradients;
};

// A scalar whose gradient by its inputs is known already.
struct KnownGradients : torch::autograd::Function<KnownGradients> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& value, at::TensorList /*inputs*/,
                            const c10::intrusive_ptr<Sums>& sums) {
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

// The matrix of a head that is nothing but a product with it, W [V, H] of h·Wᵀ, read off the graph; undefined for any other head.
at::Tensor plain_product(const at::Tensor& logits_KV, const variable_list& parameters) {
  if (parameters.size() != 1 || parameters[0].scalar_type() != at::kFloat || parameters[0].dim() != 2) return {};
  if (const at::Tensor weight_VH = plain_affine_weight(logits_KV); weight_VH.defined()) {
    return weight_VH.is_same(parameters[0]) ? weight_VH : at::Tensor();
  }
  // A chunk of few rows, or another device: at::linear's graph.
  const auto& product = logits_KV.grad_fn();
  if (!product || product->name() != "MmBackward0") return {};
  const auto& transposed = product->next_edge(1).function;
  if (!transposed || transposed->name() != "TBackward0") return {};
  const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(transposed->next_edge(0).function.get());
  return leaf != nullptr && leaf->variable.is_same(parameters[0]) ? parameters[0] : at::Tensor();
}

// sum_VH += gradᵀ·hidden, some rows at a time, so that no second matrix of the size of the head is needed.
void add_product(const at::Tensor& sum_VH, const at::Tensor& grad_KV, const at::Tensor& hidden_KH) {
  constexpr int64_t kRows = 8192;
  for (int64_t first = 0; first < sum_VH.size(0); first += kRows) {
    const int64_t count = std::min(kRows, sum_VH.size(0) - first);
    sum_VH.narrow(0, first, count).add_(product_MN(grad_KV.narrow(1, first, count).t().contiguous(), hidden_KH.t()));
  }
}

}  // namespace

HeadGradients::HeadGradients(at::Tensor hidden_TH, const std::function<at::Tensor(const at::Tensor&)>& head_KV)
    : hidden_TH_(std::move(hidden_TH)), head_KV_(head_KV) {}

at::Tensor HeadGradients::logits_KV(const at::Tensor& rows_K) {
  logits_KV_.reset();
  rows_K_ = rows_K;
  hidden_KH_ = hidden_TH_.detach().index_select(0, rows_K);
  if (!at::GradMode::is_enabled()) return head_KV_(hidden_KH_);
  hidden_KH_.set_requires_grad(hidden_TH_.requires_grad());
  at::Tensor logits = head_KV_(hidden_KH_);
  if (logits.requires_grad()) logits_KV_ = logits;
  return logits.detach();
}

void HeadGradients::find_parameters() {
  has_parameters_ = true;
  for (const at::Tensor& leaf : graph_leaves(logits_KV_)) {
    if (!leaf.is_same(hidden_KH_)) parameters_.push_back(leaf);
  }
  parameter_sums_.resize(parameters_.size());
}

void HeadGradients::add_hidden(const at::Tensor& grad_KH) {
  if (!hidden_sum_TH_.defined()) hidden_sum_TH_ = at::zeros_like(hidden_TH_);
  hidden_sum_TH_.index_add_(0, rows_K_, grad_KH);
}

void HeadGradients::add(const at::Tensor& grad_KV) {
  REMATCH_CHECK(needs_gradient(), "a chunk without graph");
  if (!has_parameters_) find_parameters();
  const bool with_hidden = hidden_KH_.requires_grad();
  if (const at::Tensor weight_VH = plain_product(logits_KV_, parameters_); weight_VH.defined()) {
    // The usual head: summed in place, without a second gradient of the size of the vocabulary for every chunk.
    logits_KV_.reset();
    const at::NoGradGuard no_grad;
    if (!parameter_sums_[0].defined()) parameter_sums_[0] = at::zeros_like(weight_VH, at::MemoryFormat::Contiguous);
    add_product(parameter_sums_[0], grad_KV, hidden_KH_.detach());
    if (with_hidden) add_hidden(product_MN(grad_KV, weight_VH.t()));
    return;
  }
  variable_list inputs = parameters_;
  if (with_hidden) inputs.push_back(hidden_KH_);
  // The graph is kept because a head may share a part of it between chunks; this chunk's own part goes with its logits.
  variable_list found = torch::autograd::grad({logits_KV_}, inputs, {grad_KV}, /*retain_graph=*/true,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  logits_KV_.reset();
  const at::NoGradGuard no_grad;
  if (with_hidden && found.back().defined()) add_hidden(found.back());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!found[i].defined()) continue;
    if (parameter_sums_[i].defined()) {
      parameter_sums_[i].add_(found[i]);
    } else {
      parameter_sums_[i] = found[i].to(at::kFloat);
    }
  }
}

at::Tensor HeadGradients::attach(const at::Tensor& value) {
  if (!has_parameters_) return value;
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
