#include "model/nn/affine.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// With fewer rows at::linear is as fast, and oneDNN's set-up for a new shape (0.2 ms) matters.
constexpr int64_t kMinRows = 64;

// The only torch operator that passes plain float32 tensors to oneDNN.
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                             std::string_view, c10::List<std::optional<at::Scalar>>,
                             std::optional<std::string_view>);

const std::optional<c10::TypedOperatorHandle<Pointwise>>& onednn_linear() {
  static const auto handle = []() -> std::optional<c10::TypedOperatorHandle<Pointwise>> {
    if (!at::globalContext().hasMKLDNN()) return std::nullopt;
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!found) return std::nullopt;
    return found->typed<Pointwise>();
  }();
  return handle;
}

// Meta tensors take the CPU path, so that a plan counts its saved tensors
// (tools/plan/row_memory.h).
bool is_plain(const at::Tensor& tensor) {
  return (tensor.is_cpu() || tensor.is_meta()) && tensor.scalar_type() == at::kFloat;
}

bool uses_onednn(const at::Tensor& x, const at::Tensor& weight) {
  return is_plain(x) && is_plain(weight) && x.numel() >= kMinRows * x.size(-1) &&
         weight.numel() > 0 && onednn_linear() && at::globalContext().userEnabledMkldnn();
}

// A matrix with contiguous rows or columns, which oneDNN requires; copies any other, such as
// expanded gradients.
at::Tensor dense(const at::Tensor& matrix) {
  return matrix.is_contiguous() || matrix.t().is_contiguous() ? matrix : matrix.contiguous();
}

// gᵀ·x in chunks of rows: oneDNN copies both transposed operands, and for a long row these copies
// would be the peak memory of the step.
at::Tensor weight_gradient(const at::Tensor& g_MN, const at::Tensor& x_MK) {
  constexpr int64_t kRows = 2048;
  at::Tensor sum_NK;
  for (int64_t first = 0; first < g_MN.size(0); first += kRows) {
    const int64_t count = std::min(kRows, g_MN.size(0) - first);
    // With both operands transposed oneDNN is a third slower, so copy gᵀ.
    const at::Tensor part_NK =
        product_MN(g_MN.narrow(0, first, count).t().contiguous(), x_MK.narrow(0, first, count).t());
    sum_NK = sum_NK.defined() ? sum_NK.add_(part_NK) : part_NK;
  }
  return sum_NK;
}

// g·W for the head's weight in bfloat16, some outputs at a time, so that oneDNN's copy of W stays
// in the caches; sums in float32.
at::Tensor input_gradient_by_parts(const at::Tensor& g_MN, const at::Tensor& weight) {
  constexpr int64_t kOutputs = 2048;
  at::Tensor sum = at::zeros({g_MN.size(0), weight.size(1)}, g_MN.options().dtype(at::kFloat));
  for (int64_t first = 0; first < weight.size(0); first += kOutputs) {
    const int64_t count = std::min(kOutputs, weight.size(0) - first);
    sum.add_(at::mm(g_MN.narrow(1, first, count), weight.narrow(0, first, count)));
  }
  return sum.to(g_MN.scalar_type());
}

// g·W. For bfloat16 oneDNN first copies the second operand of a product into tiles: for few rows
// copying gᵀ takes less time than copying W.
at::Tensor input_gradient(const at::Tensor& g_MN, const at::Tensor& weight) {
  constexpr int64_t kMaxRows = 512, kTall = 1 << 15;
  const bool has_few_rows =
      weight.is_cpu() && weight.scalar_type() == at::kBFloat16 && g_MN.size(0) <= kMaxRows;
  if (has_few_rows && weight.size(0) >= kTall) return input_gradient_by_parts(g_MN, weight);
  if (has_few_rows && weight.numel() >= (int64_t{1} << 22))
    return at::mm(weight.t(), g_MN.t()).t().contiguous();
  return product_MN(g_MN, weight.t());
}

// The output without a graph.
at::Tensor output_of(const at::Tensor& x, const at::Tensor& weight,
                     const std::optional<at::Tensor>& bias) {
  if (!uses_onednn(x, weight)) return at::linear(x, weight, bias);
  at::Tensor y_MN = product_MN(x.reshape({-1, x.size(-1)}), weight);
  if (bias) y_MN.add_(*bias);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return y_MN.view(sizes);
}

at::Tensor zeros_for(const at::Tensor& x, const at::Tensor& weight) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return at::zeros(sizes, x.options());
}

struct AffineFunction : torch::autograd::Function<AffineFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, Results results) {
    context->saved_data["biased"] = bias.has_value();
    context->saved_data["sizes"] = x.sizes();
    context->save_for_backward({weight.requires_grad() ? x : at::Tensor(), weight});
    return results == Results::kRead ? output_of(x, weight, bias) : zeros_for(x, weight);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor g_MN = gradients[0].reshape({-1, weight.size(0)}).contiguous();
    variable_list found(4);
    if (context->needs_input_grad(0))
      found[0] = input_gradient(g_MN, weight).view(context->saved_data["sizes"].toIntVector());
    if (context->needs_input_grad(1)) found[1] = weight_gradient(g_MN, x.reshape({-1, x.size(-1)}));
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2))
      found[2] = g_MN.sum(0);
    return found;
  }
};

// The gradients of at::linear, bit for bit: those of a matrix product.
struct UnreadLinear : torch::autograd::Function<UnreadLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_MK,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
    context->saved_data["biased"] = bias.has_value();
    context->save_for_backward({weight.requires_grad() ? x_MK : at::Tensor(), weight});
    return zeros_for(x_MK, weight);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& g_MN = gradients[0];
    variable_list found(3);
    if (context->needs_input_grad(0)) found[0] = at::mm(g_MN, saved[1]);
    if (context->needs_input_grad(1)) found[1] = at::mm(g_MN.t(), saved[0]);
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2))
      found[2] = g_MN.sum(0);
    return found;
  }
};

bool trains(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

// True if only the input has a gradient: the function then serves every dtype.
bool is_frozen(const at::Tensor& weight, const at::Tensor& bias) {
  return !trains(weight) && !trains(bias);
}

bool has_fast_gradient(const at::Tensor& x, const at::Tensor& weight) {
  return (x.is_cpu() || x.is_meta()) && x.scalar_type() == at::kBFloat16 &&
         weight.scalar_type() == at::kBFloat16 && x.numel() >= kMinRows * x.size(-1) &&
         weight.dim() == 2 && weight.numel() > 0;
}

}  // namespace

void bound_onednn_caches() {
  // compiled code: enough for one step
  setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64", /*overwrite=*/0);
  setenv("LRU_CACHE_CAPACITY", "1", /*overwrite=*/0);
}

at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Results results) {
  const auto maybe_bias = bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
  const bool has_own_gradient = uses_onednn(x, weight) || (trains(x) && is_frozen(weight, bias) &&
                                                           has_fast_gradient(x, weight));
  if (has_own_gradient) return AffineFunction::apply(x, weight, maybe_bias, results);
  return results == Results::kUnread && x.dim() == 2 ? UnreadLinear::apply(x, weight, maybe_bias)
                                                     : at::linear(x, weight, maybe_bias);
}

at::Tensor product_MN(const at::Tensor& x_MK, const at::Tensor& w_NK) {
  const at::NoGradGuard no_grad;
  if (x_MK.is_meta() || !uses_onednn(x_MK, w_NK)) return at::mm(x_MK, w_NK.t());
  return onednn_linear()->call(dense(x_MK.detach()), dense(w_NK.detach()), std::nullopt, "none",
                               c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

}  // namespace rematch
