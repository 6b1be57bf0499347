#include "model/nn/fused_conv.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/isas.h"
#include "model/nn/short_conv.h"

namespace rematch {
namespace {

// The convolution of short_conv.h in double.
at::Tensor convolved_in_double(const at::Tensor& x_TC, const at::Tensor& weight_C1J,
                               const std::vector<int64_t>& lens) {
  const int64_t num_taps = weight_C1J.size(2);
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (const int64_t len : lens) {
    const at::Tensor padded = at::cat(
        {at::zeros({num_taps - 1, x_TC.size(1)}, x_TC.options()), x_TC.narrow(0, begin, len)});
    at::Tensor sum = at::zeros({len, x_TC.size(1)}, x_TC.options());
    for (int64_t j = 0; j < num_taps; ++j)
      sum = sum + padded.narrow(0, j, len) * weight_C1J.select(1, 0).select(1, j);
    parts.push_back(at::silu(sum));
    begin += len;
  }
  return at::cat(parts);
}

void check_conv() {
  at::manual_seed(8);
  for (const int64_t width : {5, 32, 100}) {
    const std::vector<int64_t> lens{7, 0, 1, 30, 2};
    const at::Tensor weight = at::randn({width, 1, 4}).to(at::kBFloat16);
    at::Tensor x = at::randn({40, width}).to(at::kBFloat16).requires_grad_();
    ASSERT_TRUE(has_fused_conv(x, weight));
    const at::Tensor wide = x.detach().to(at::kDouble).requires_grad_();
    const at::Tensor y = short_conv(x, weight, lens),
                     reference = convolved_in_double(wide, weight.to(at::kDouble), lens);
    const auto error = [](const at::Tensor& found, const at::Tensor& exact) {
      return ((found.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
    };
    EXPECT_LT(error(y, reference.detach()), 5e-3);
    const at::Tensor g = at::randn(y.sizes()).to(at::kBFloat16);
    const auto ours = torch::autograd::grad({y}, {x}, {g}),
               exact = torch::autograd::grad({reference}, {wide}, {g.to(at::kDouble)});
    EXPECT_LT(error(ours[0], exact[0]), 5e-3);
  }
}

TEST(FusedConv, EqualsTheSumAndItsGradientInsideEachSegment) {
  test::for_each_isa([](kernels::Isa) { check_conv(); });
}

}  // namespace
}  // namespace rematch
