#include "model/nn/fused_norms.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/isas.h"
#include "model/nn/layers.h"
#include "model/nn/more_norms.h"

namespace rematch {
namespace {

constexpr double kNormEps = 1e-6;

at::Tensor random_half(at::IntArrayRef sizes) { return at::randn(sizes).to(at::kBFloat16); }

at::Tensor normed_in_double(const at::Tensor& x) {
  return x * at::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + kNormEps);
}

// Values and gradients of `found` against those of `wanted`, both functions of the inputs.
template <class Found, class Wanted>
void check_norm(std::vector<at::Tensor> inputs, const Found& found, const Wanted& wanted) {
  std::vector<at::Tensor> wide;
  for (at::Tensor& input : inputs) {
    input.requires_grad_();
    wide.push_back(input.detach().to(at::kDouble).requires_grad_());
  }
  const at::Tensor y = found(inputs), reference = wanted(wide);
  const auto near = [](const at::Tensor& value, const at::Tensor& exact) {
    return (value.to(at::kDouble) - exact).norm().item<double>() <
           6e-3 * exact.norm().item<double>();
  };
  EXPECT_TRUE(near(y, reference.detach()));
  const at::Tensor g = random_half(y.sizes());
  const auto ours = torch::autograd::grad({y}, inputs, {g}),
             exact = torch::autograd::grad({reference}, wide, {g.to(at::kDouble)});
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(near(ours[i], exact[i])) << i;
}

void check_all_norms() {
  at::manual_seed(6);
  for (const int64_t width : {7, 16, 48, 128, 1000}) {
    const at::Tensor weight = random_half({width}), w = weight.to(at::kDouble);
    ASSERT_TRUE(has_fused_norm(random_half({2, width}), weight));
    check_norm(
        {random_half({9, 3, width})},
        [&](const auto& x) { return rms_norm(x[0], weight, kNormEps); },
        [&](const auto& x) { return w * normed_in_double(x[0]); });
    check_norm(
        {random_half({9, 3, width})},
        [&](const auto& x) { return offset_rms_norm(x[0], weight, kNormEps); },
        [&](const auto& x) { return (1 + w) * normed_in_double(x[0]); });
    check_norm(
        {random_half({9, 3, width}), random_half({9, 3, width})},
        [&](const auto& x) { return gated_rms_norm(x[0], x[1], weight, kNormEps); },
        [&](const auto& x) { return w * normed_in_double(x[0]) * at::silu(x[1]); });
  }
}

TEST(FusedNorm, EqualsTheFormulaAndItsGradientForEveryWidth) {
  test::for_each_isa([](kernels::Isa) { check_all_norms(); });
}

TEST(FusedNorm, TakesViewsAndLeavesTrainedWeightsToTorch) {
  at::manual_seed(7);
  const at::Tensor rows = random_half({6, 80}), weight = random_half({32});
  const at::Tensor view = rows.narrow(1, 16, 32);
  EXPECT_TRUE(
      at::equal(rms_norm(view, weight, kNormEps), rms_norm(view.contiguous(), weight, kNormEps)));
  EXPECT_FALSE(has_fused_norm(view, weight.clone().requires_grad_()));
  EXPECT_FALSE(has_fused_norm(view.to(at::kFloat), weight));
}

}  // namespace
}  // namespace rematch
