#include "model/nn/batched_product.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

void expect_near(const at::Tensor& found, const at::Tensor& wanted) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  EXPECT_LT((found - wanted).abs().max().item<double>(), 1e-5);
}

TEST(BatchedProduct, EqualsMatmulForViewsOfEveryKind) {
  at::manual_seed(1);
  const at::Tensor a = at::randn({3, 2, 20, 24}), b = at::randn({3, 2, 24, 18});
  const auto turned = [](const at::Tensor& x) {
    return x.transpose(-1, -2).contiguous().transpose(-1, -2);
  };
  for (const at::Tensor& left : {a, turned(a)}) {
    for (const at::Tensor& right : {b, turned(b)})
      expect_near(batched_product(left, right), at::matmul(a, b));
  }
  expect_near(batched_product(a[0], b[0]), at::matmul(a[0], b[0]));
}

TEST(BatchedProduct, AddsToASum) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({4, 7, 9}), b = at::randn({4, 9, 5}), c = at::randn({4, 7, 5});
  for (const double sign : {1.0, -1.0})
    expect_near(add_batched_product(c.clone(), a, b, sign), at::baddbmm(c, a, b, 1, sign));
}

}  // namespace
}  // namespace rematch
