#include "model/nn/more_norms.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>

#include "model/nn/device_kernels.h"
#include "model/nn/layers.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// x in float32 and 1/rms(x).
struct Wide {
  Wide(const at::Tensor& x, double eps)
      : x(x.to(at::kFloat)), factor(at::rsqrt(this->x.pow(2).mean(-1, /*keepdim=*/true) + eps)) {}
  at::Tensor normed() const { return x * factor; }
  at::Tensor gradient(const at::Tensor& g_normed, const at::Tensor& normed) const {
    return factor * (g_normed - normed * (g_normed * normed).mean(-1, /*keepdim=*/true));
  }
  at::Tensor x, factor;
};

// Sum over all dimensions but the last.
at::Tensor sum_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).sum(0); }

struct OffsetRmsNorm : torch::autograd::Function<OffsetRmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
    context->save_for_backward({x, weight});
    context->saved_data["eps"] = eps;
    return (Wide(x, eps).normed() * (weight.to(at::kFloat) + 1)).to(x.scalar_type());
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const Wide wide(x, context->saved_data["eps"].toDouble());
    const at::Tensor normed = wide.normed(), g = gradients[0].to(at::kFloat);
    variable_list found(3);
    if (context->needs_input_grad(0))
      found[0] = wide.gradient(g * (weight.to(at::kFloat) + 1), normed).to(x.scalar_type());
    if (context->needs_input_grad(1)) found[1] = sum_rows(g * normed).to(weight.scalar_type());
    return found;
  }
};

// The same on devices, in three operators each way: float32 between two casts.
struct FusedOffsetNorm : torch::autograd::Function<FusedOffsetNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor factor = weight.to(at::kFloat) + 1;
    auto [normed, rstd] = at::_fused_rms_norm(x.to(at::kFloat), factor.sizes(), factor, eps);
    context->save_for_backward({x, weight, factor, rstd});
    return normed.to(x.scalar_type());
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &factor = saved[2];
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [dx, dw] = at::_fused_rms_norm_backward(
        gradients[0].to(at::kFloat).contiguous(), x.to(at::kFloat), factor.sizes(), saved[3],
        factor, {context->needs_input_grad(0), context->needs_input_grad(1)});
    return {dx.defined() ? dx.to(x.scalar_type()) : dx,
            dw.defined() ? dw.to(weight.scalar_type()) : dw,
            {}};
  }
};

struct GatedRmsNorm : torch::autograd::Function<GatedRmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate,
                            const at::Tensor& weight, double eps) {
    context->save_for_backward({x, gate, weight});
    context->saved_data["eps"] = eps;
    const at::Tensor normed = Wide(x, eps).normed().to(x.scalar_type());
    return (weight * normed * at::silu(gate.to(at::kFloat))).to(x.scalar_type());
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[2];
    const at::Tensor gate = saved[1].to(at::kFloat);
    const Wide wide(x, context->saved_data["eps"].toDouble());
    const at::Tensor normed = wide.normed(), g = gradients[0].to(at::kFloat),
                     g_scaled = g * at::silu(gate);
    variable_list found(4);
    if (context->needs_input_grad(0))
      found[0] = wide.gradient(g_scaled * weight.to(at::kFloat), normed).to(x.scalar_type());
    if (context->needs_input_grad(1)) {
      const at::Tensor scaled = (weight * normed.to(x.scalar_type())).to(at::kFloat);
      found[1] = at::silu_backward(g * scaled, gate).to(saved[1].scalar_type());
    }
    if (context->needs_input_grad(2))
      found[2] = sum_rows(g_scaled * normed).to(weight.scalar_type());
    return found;
  }
};

// a · b in float32, rounded once to a dtype.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  at::Tensor out = at::empty(a.sizes(), a.options().dtype(dtype));
  return at::mul_out(out, a, b);
}

/// GatedRmsNorm on devices, by fused operators.
struct FusedGatedNorm : torch::autograd::Function<FusedGatedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate,
                            const at::Tensor& weight, double eps) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [normed, rstd] = at::_fused_rms_norm(x, weight.sizes(), weight, eps);
    context->save_for_backward({x, gate, weight, rstd});
    context->saved_data["eps"] = eps;
    return product(at::silu(gate.to(at::kFloat)), normed, x.scalar_type());
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[2], &g = gradients[0];
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor gate = saved[1].to(at::kFloat);
    variable_list found(4);
    auto [dx, dw] = at::_fused_rms_norm_backward(
        product(at::silu(gate), g, x.scalar_type()), x, weight.sizes(), saved[3], weight,
        {context->needs_input_grad(0), context->needs_input_grad(2)});
    found[0] = dx;
    found[2] = dw;
    if (context->needs_input_grad(1)) {
      const at::Tensor normed = std::get<0>(
          at::_fused_rms_norm(x, weight.sizes(), weight, context->saved_data["eps"].toDouble()));
      found[1] = at::silu_backward(product(g, normed, at::kFloat), gate).to(saved[1].scalar_type());
    }
    return found;
  }
};

}  // namespace

at::Tensor offset_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  // Float32 has its own gradient: on a CPU one pass over memory.
  if (x.scalar_type() == at::kFloat) return rms_norm(x, weight.to(at::kFloat) + 1, eps);
  return uses_device_kernels(x.device()) ? FusedOffsetNorm::apply(x, weight, eps)
                                         : OffsetRmsNorm::apply(x, weight, eps);
}

at::Tensor gated_rms_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                          double eps) {
  if (uses_device_kernels(x.device()) && x.scalar_type() == weight.scalar_type())
    return FusedGatedNorm::apply(x.contiguous(), gate, weight, eps);
  return GatedRmsNorm::apply(x, gate, weight, eps);
}

}  // namespace rematch
