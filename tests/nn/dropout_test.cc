#include "model/nn/dropout.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace rematch {
namespace {

at::Tensor kept(at::IntArrayRef sizes, double dropout, uint64_t seed) {
  return seeded_dropout(at::ones(sizes), dropout, seed).ne(0);
}

// The distance of a share from its expectation, in standard deviations.
double deviations(const at::Tensor& hits, double expected) {
  const auto count = static_cast<double>(hits.numel());
  return std::abs(hits.to(at::kDouble).mean().item<double>() - expected) /
         std::sqrt(expected * (1 - expected) / count);
}

}  // namespace

TEST(Dropout, DropsTheShareThatItIsToldAndScalesTheRest) {
  for (const double dropout : {0.01, 0.05, 0.5, 0.9}) {
    const at::Tensor x = at::randn({301, 333}), y = seeded_dropout(x, dropout, 11);
    const at::Tensor stays = y.ne(0);
    EXPECT_LT(deviations(stays, 1 - dropout), 4) << dropout;
    const auto scale = static_cast<double>(static_cast<float>(1 / (1 - dropout)));
    EXPECT_TRUE(at::equal(y, x * stays * scale)) << dropout;
  }
  const at::Tensor x = at::randn({5, 5});
  EXPECT_TRUE(at::equal(seeded_dropout(x, 0, 11), x));
}

// Two values that are near each other in a row, in rows, or under seeds that differ by a bit fall
// together as often as two coins do.
TEST(Dropout, NeighboursAndSeedsAreIndependent) {
  const at::Tensor first = kept({2000, 512}, 0.3, 8), second = kept({2000, 512}, 0.3, 9);
  const double both = 0.7 * 0.7;
  EXPECT_LT(deviations(first.logical_and(second), both), 4);
  for (const int64_t step : {1, 2, 7, 64, 256}) {
    const int64_t rest = 512 - step;
    EXPECT_LT(deviations(first.narrow(1, 0, rest).logical_and(first.narrow(1, step, rest)), both),
              4)
        << step;
    EXPECT_LT(
        deviations(first.narrow(0, 0, 2000 - step).logical_and(first.narrow(0, step, 2000 - step)),
                   both),
        4)
        << step;
    // One row is not another one moved.
    EXPECT_LT(deviations(first.narrow(0, 0, 1999)
                             .narrow(1, 0, rest)
                             .logical_and(first.narrow(0, 1, 1999).narrow(1, step, rest)),
                         both),
              4)
        << step;
  }
  // No place of a row is dropped more often than others.
  const at::Tensor shares = first.to(at::kDouble).mean(0);
  EXPECT_LT((shares - 0.7).abs().max().item<double>(), 5 * std::sqrt(0.21 / 2000));
}

TEST(Dropout, ThreadsDtypesAndTheBackwardPassDropTheSame) {
  const at::Tensor x = at::randn({777, 96});
  const at::Tensor expected = seeded_dropout(x, 0.3, 5);
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(seeded_dropout(x, 0.3, 5), expected));
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(seeded_dropout(x.view({7, 111, 96}), 0.3, 5).view({777, 96}), expected));

  const at::Tensor half = x.to(at::kBFloat16), dropped = seeded_dropout(half, 0.3, 5);
  EXPECT_EQ(dropped.scalar_type(), at::kBFloat16);
  const auto scale = static_cast<double>(static_cast<float>(1 / 0.7));
  EXPECT_TRUE(at::equal(dropped, (half.to(at::kFloat) * expected.ne(0) * scale).to(at::kBFloat16)));

  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor leaf =
        x.to(dtype, /*non_blocking=*/false, /*copy=*/true).set_requires_grad(true);
    const at::Tensor gradient = at::randn({777, 96}).to(dtype);
    torch::autograd::backward({seeded_dropout(leaf, 0.3, 5)}, {gradient});
    EXPECT_TRUE(at::equal(leaf.grad(), seeded_dropout(gradient, 0.3, 5)));
  }
}

}  // namespace rematch
