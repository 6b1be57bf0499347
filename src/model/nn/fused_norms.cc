#include "model/nn/fused_norms.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "model/kernels/half_norms.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const uint16_t* halves(const at::Tensor& x) {
  return static_cast<const uint16_t*>(x.const_data_ptr());
}
uint16_t* mutable_halves(const at::Tensor& x) {
  return static_cast<uint16_t*>(x.mutable_data_ptr());
}

/// The rows of a norm's input.
struct NormRows {
  at::Tensor x, weight;  ///< contiguous
  float eps;
  kernels::NormForm form;

  NormRows(const at::Tensor& input, const at::Tensor& norm_weight, double norm_eps,
           kernels::NormForm norm_form)
      : x(input.contiguous()),
        weight(norm_weight.contiguous()),
        eps(static_cast<float>(norm_eps)),
        form(norm_form) {}

  /// Calls work(row, offset of its first value).
  template <class Work>
  void for_each(const Work& work) const {
    const int64_t width = weight.numel(), grain = std::max<int64_t>(1, (1 << 14) / width);
    at::parallel_for(0, x.numel() / width, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        work({.x = halves(x) + i * width,
              .weight = halves(weight),
              .width = width,
              .eps = eps,
              .form = form},
             i * width);
      }
    });
  }
};

struct FusedNorm : torch::autograd::Function<FusedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps, kernels::NormForm form) {
    const NormRows rows(x, weight, eps, form);
    context->save_for_backward({x, weight});
    context->saved_data["eps"] = eps;
    context->saved_data["form"] = static_cast<int64_t>(form);
    const at::Tensor y = at::empty_like(rows.x);
    rows.for_each([&](const kernels::HalfNormRow& row, int64_t at) {
      kernels::half_norm(row, mutable_halves(y) + at);
    });
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormRows rows(saved[0], saved[1], context->saved_data["eps"].toDouble(),
                        static_cast<kernels::NormForm>(context->saved_data["form"].toInt()));
    const at::Tensor g = gradients[0].contiguous(), g_x = at::empty_like(rows.x);
    rows.for_each([&](const kernels::HalfNormRow& row, int64_t at) {
      kernels::half_norm_gradient(row, halves(g) + at, mutable_halves(g_x) + at);
    });
    return {g_x, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct FusedGatedNorm : torch::autograd::Function<FusedGatedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate,
                            const at::Tensor& weight, double eps) {
    const NormRows rows(x, weight, eps, kernels::NormForm::kPlain);
    context->save_for_backward({x, gate, weight});
    context->saved_data["eps"] = eps;
    const at::Tensor z = gate.contiguous(), y = at::empty_like(rows.x);
    rows.for_each([&](const kernels::HalfNormRow& row, int64_t at) {
      kernels::half_gated_norm(row, halves(z) + at, mutable_halves(y) + at);
    });
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormRows rows(saved[0], saved[2], context->saved_data["eps"].toDouble(),
                        kernels::NormForm::kPlain);
    const at::Tensor z = saved[1].contiguous(), g = gradients[0].contiguous(),
                     g_x = at::empty_like(rows.x), g_gate = at::empty_like(rows.x);
    rows.for_each([&](const kernels::HalfNormRow& row, int64_t at) {
      kernels::half_gated_norm_gradient(row, halves(z) + at, halves(g) + at,
                                        mutable_halves(g_x) + at, mutable_halves(g_gate) + at);
    });
    return {g_x, g_gate, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_fused_norm(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && weight.scalar_type() == at::kBFloat16 &&
         !weight.requires_grad() && x.numel() > 0 && x.size(-1) == weight.numel();
}

at::Tensor fused_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                      FusedNormForm form) {
  return FusedNorm::apply(
      x, weight, eps,
      form == FusedNormForm::kPlain ? kernels::NormForm::kPlain : kernels::NormForm::kOffset);
}

at::Tensor fused_gated_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                            double eps) {
  return FusedGatedNorm::apply(x, gate, weight, eps);
}

}  // namespace rematch
