#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "model/nn/device_kernels.h"
#include "model/nn/layers.h"

namespace rematch {
namespace {

// Rows [R, W]; y = w·x̂, x̂ = x·r with r = 1/rms(x). dx = r·(g·w − x̂·mean(g·w·x̂)), dw = Σ g·x̂.
struct Gradients {
  at::Tensor x;
  at::Tensor weight;
};

constexpr int64_t kChunkRows = 128;  // fixed, so that sums do not depend on the number of threads

float weighted_dot(const float* g, const float* w, const float* x, int64_t width) {
  float sums[8] = {};  // independent sums, which the compiler turns into one vector
  int64_t i = 0;
  for (; i + 8 <= width; i += 8) {
    for (int64_t lane = 0; lane < 8; ++lane) sums[lane] += g[i + lane] * w[i + lane] * x[i + lane];
  }
  for (; i < width; ++i) sums[0] += g[i] * w[i] * x[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Float32 on CPU: one pass over memory.
Gradients gradients_in_one_pass(const at::Tensor& g_RW, const at::Tensor& x_RW,
                                const at::Tensor& weight, const at::Tensor& rstd_R) {
  const int64_t num_rows = x_RW.size(0), width = x_RW.size(1),
                num_chunks = (num_rows + kChunkRows - 1) / kChunkRows;
  Gradients gradients{at::empty_like(x_RW),
                      at::zeros({std::max<int64_t>(num_chunks, 1), width}, x_RW.options())};
  const float* g_data = g_RW.const_data_ptr<float>();
  const float* x_data = x_RW.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const float* rstd = rstd_R.const_data_ptr<float>();
  float* dx_data = gradients.x.data_ptr<float>();
  float* dw_data = gradients.weight.data_ptr<float>();
  at::parallel_for(0, num_chunks, 1, [&](int64_t first_chunk, int64_t last_chunk) {
    for (int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
      float* dw = dw_data + chunk * width;
      for (int64_t row = chunk * kChunkRows; row < std::min(num_rows, (chunk + 1) * kChunkRows);
           ++row) {
        const float* g = g_data + row * width;
        const float* x = x_data + row * width;
        float* dx = dx_data + row * width;
        const float r = rstd[row];
        const float shrink = weighted_dot(g, w, x, width) * r * r / static_cast<float>(width);
        for (int64_t i = 0; i < width; ++i) dx[i] = r * (g[i] * w[i] - x[i] * shrink);
        for (int64_t i = 0; i < width; ++i) dw[i] += g[i] * x[i] * r;
      }
    }
  });
  gradients.weight = gradients.weight.sum(0);
  return gradients;
}

// The weight's gradient only where it is trained: with an adapter it is frozen.
Gradients gradients_by_formula(const at::Tensor& g_RW, const at::Tensor& x_RW,
                               const at::Tensor& weight, const at::Tensor& rstd_R,
                               bool needs_weight) {
  const at::Tensor rstd = rstd_R.unsqueeze(1);
  const at::Tensor normed = x_RW.to(at::kFloat) * rstd;
  const at::Tensor g_normed = (g_RW * weight).to(at::kFloat);
  const at::Tensor mean = (g_normed * normed).mean(1, /*keepdim=*/true);
  Gradients gradients{(rstd * (g_normed - normed * mean)).to(x_RW.scalar_type()), {}};
  if (needs_weight) {
    gradients.weight =
        (g_RW.to(at::kFloat) * normed.to(x_RW.scalar_type())).sum(0).to(weight.scalar_type());
  }
  return gradients;
}

// With its own gradient: autograd's chain of small operations takes three times as long, a tenth of
// a step.
struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, double eps) {
    // The order of these operations determines the bits (MODEL 2.2): float32 statistics, back to
    // x's dtype, only then the weight.
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor rstd = at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + eps);
    context->save_for_backward({x, weight, rstd});
    return weight * (wide * rstd).to(x.scalar_type());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const int64_t width = saved[1].numel();
    const auto rows = [&](const at::Tensor& tensor) {
      return tensor.reshape({-1, width}).contiguous();
    };
    const at::Tensor g = rows(gradients[0]), x = rows(saved[0]),
                     rstd = saved[2].reshape({-1}).contiguous();
    const at::Tensor weight = saved[1].contiguous();
    const bool is_plain = x.device().is_cpu() && x.scalar_type() == at::kFloat &&
                          weight.scalar_type() == at::kFloat && g.scalar_type() == at::kFloat;
    const Gradients found =
        is_plain ? gradients_in_one_pass(g, x, weight, rstd)
                 : gradients_by_formula(g, x, weight, rstd, context->needs_input_grad(1));
    return {found.x.reshape(saved[0].sizes()), found.weight, {}};
  }
};

// One operator forward and one backward, on devices. It rounds once, at the end, and computes no
// gradient of a frozen weight.
struct FusedRmsNorm : torch::autograd::Function<FusedRmsNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, double eps) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [normed, rstd] = at::_fused_rms_norm(x, weight.sizes(), weight, eps);
    context->save_for_backward({x, weight, rstd});
    return normed;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [x, weight] = at::_fused_rms_norm_backward(
        gradients[0].contiguous(), saved[0], saved[1].sizes(), saved[2], saved[1],
        {context->needs_input_grad(0), context->needs_input_grad(1)});
    return {x, weight, {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (uses_device_kernels(x.device()) && x.scalar_type() == weight.scalar_type())
    return FusedRmsNorm::apply(x, weight, eps);
  return RmsNormFunction::apply(x, weight, eps);
}

}  // namespace rematch
