#include "model/nn/affine.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>

namespace rematch {
namespace {

struct Case {
  std::vector<int64_t> x_sizes;
  int64_t num_outputs;
  bool biased;
};

at::Tensor leaf(const std::vector<int64_t>& sizes, bool requires_grad = true) {
  return at::randn(sizes).set_requires_grad(requires_grad);
}

double relative_error(const at::Tensor& value, const at::Tensor& reference) {
  return ((value.to(at::kDouble) - reference).abs().max() / reference.abs().max()).item<double>();
}

}  // namespace

TEST(Affine, EqualsTheProductInDoublesForwardAndBackward) {
  at::manual_seed(1);
  for (const Case& c :
       {Case{{200, 96}, 40, true}, Case{{3, 70, 33}, 65, false}, Case{{64, 16}, 1, true},
        Case{{1500, 256}, 512, true}, Case{{5, 24}, 7, true}, Case{{24}, 7, false}}) {
    const at::Tensor x = leaf(c.x_sizes), weight = leaf({c.num_outputs, c.x_sizes.back()});
    const at::Tensor bias = c.biased ? leaf({c.num_outputs}) : at::Tensor();
    const at::Tensor y = affine(x, weight, bias);
    const at::Tensor g = at::randn_like(y);
    std::vector<at::Tensor> inputs{x, weight};
    if (c.biased) inputs.push_back(bias);
    const auto gradients = torch::autograd::grad({y}, inputs, {g});
    const auto wide = [](const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); };
    const at::Tensor x_MK = wide(x).reshape({-1, x.size(-1)}),
                     g_MN = wide(g).reshape({-1, c.num_outputs});
    at::Tensor reference = x_MK.mm(wide(weight).t());
    if (c.biased) reference += wide(bias);
    EXPECT_LT(relative_error(y, reference.view(y.sizes())), 2e-6);
    EXPECT_LT(relative_error(gradients[0], g_MN.mm(wide(weight)).view(x.sizes())), 2e-6);
    EXPECT_LT(relative_error(gradients[1], g_MN.t().mm(x_MK)), 2e-6);
    if (c.biased) {
      EXPECT_LT(relative_error(gradients[2], g_MN.sum(0)), 2e-6);
    }
  }
}

TEST(Affine, WhatIsFrozenTakesNoGradient) {
  const at::Tensor x = leaf({80, 16}), weight = leaf({8, 16}, false), bias = leaf({8}, false);
  affine(x, weight, bias).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_FALSE(affine(x.detach(), weight, bias).requires_grad());
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(affine(x, weight, bias).requires_grad());
}

TEST(Affine, TakesViewsAndExpandedGradients) {
  const at::Tensor wide = at::randn({100, 48}), weight = leaf({8, 16});
  const at::Tensor x = wide.narrow(1, 16, 16);
  EXPECT_TRUE(at::allclose(affine(x, weight), at::linear(x, weight), 1e-5, 1e-5));
  affine(x, weight).sum().backward();  // the gradient is one number, expanded
  EXPECT_TRUE(at::allclose(weight.grad(), x.sum(0).expand({8, 16}), 1e-5, 1e-4));
}

TEST(Affine, RepeatsToTheBit) {
  const at::Tensor x = leaf({333, 64}), weight = leaf({96, 64});
  const at::Tensor first = affine(x, weight);
  EXPECT_TRUE(at::equal(first, affine(x, weight)));
  const at::Tensor g = at::randn_like(first);
  const auto once = torch::autograd::grad({affine(x, weight)}, {x, weight}, {g});
  const auto again = torch::autograd::grad({affine(x, weight)}, {x, weight}, {g});
  EXPECT_TRUE(at::equal(once[0], again[0]));
  EXPECT_TRUE(at::equal(once[1], again[1]));
}

TEST(Affine, GradientsThroughAFrozenBfloat16WeightEqualThoseOfTorch) {
  at::manual_seed(2);
  // Large weights and tall ones, as a head has, are multiplied in other ways.
  for (const auto& [num_rows, inputs, outputs] : {std::array<int64_t, 3>{100, 2048, 2048},
                                                  {70, 32, 33000},
                                                  {100, 96, 64},
                                                  {7, 96, 64},
                                                  {600, 64, 96}}) {
    const at::Tensor x = leaf({num_rows, inputs}).detach().to(at::kBFloat16).requires_grad_();
    const at::Tensor weight = leaf({outputs, inputs}, false).to(at::kBFloat16);
    const at::Tensor bias = leaf({outputs}, false).to(at::kBFloat16);
    const at::Tensor y = affine(x, weight, bias), wanted = at::linear(x, weight, bias);
    EXPECT_TRUE(at::equal(y, wanted));
    const at::Tensor g = at::randn(y.sizes()).to(at::kBFloat16);
    const at::Tensor gradient = torch::autograd::grad({y}, {x}, {g})[0];
    const at::Tensor exact = g.to(at::kDouble).mm(weight.to(at::kDouble));
    EXPECT_TRUE(gradient.is_contiguous());
    EXPECT_LT(relative_error(gradient, exact), 4e-3) << num_rows;
  }
}

void expect_same_gradients_unread(at::ScalarType dtype, int64_t num_rows, int64_t width,
                                  bool trains) {
  const auto make = [&](const std::vector<int64_t>& sizes, bool requires_grad) {
    return leaf(sizes).detach().to(dtype).set_requires_grad(requires_grad);
  };
  const at::Tensor x = make({num_rows, width}, true), weight = make({width, width}, trains),
                   bias = make({width}, trains);
  std::vector<at::Tensor> inputs{x};
  if (trains) inputs.insert(inputs.end(), {weight, bias});
  const at::Tensor g = at::randn({num_rows, width}).to(dtype),
                   unread = affine(x, weight, bias, Results::kUnread);
  EXPECT_EQ(unread.count_nonzero().item<int64_t>(), 0);
  const auto found = torch::autograd::grad({unread}, inputs, {g}),
             wanted = torch::autograd::grad({affine(x, weight, bias)}, inputs, {g});
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(at::equal(found[i], wanted[i])) << dtype << num_rows << trains << i;
}

TEST(Affine, UnreadHasTheGradientsOfTheReadOne) {
  at::manual_seed(3);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool trains : {false, true}) {
      expect_same_gradients_unread(dtype, 5, 48, trains);
      expect_same_gradients_unread(dtype, 200, 48, trains);
    }
  }
  // Wide weights have another product (input_gradient()), from kMinRows rows on.
  expect_same_gradients_unread(at::kBFloat16, 40, 2048, false);
  expect_same_gradients_unread(at::kBFloat16, 100, 2048, false);
}

}  // namespace rematch
