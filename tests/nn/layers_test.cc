#include "model/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/nn/rope.h"

namespace rematch {
namespace {

TEST(RmsNorm, CastsBackBeforeItMultipliesWithTheWeight) {
  const at::Tensor x = at::sin(at::arange(64, at::kFloat) * 1.3).view({2, 32}).to(at::kBFloat16);
  const at::Tensor weight = (at::cos(at::arange(32, at::kFloat)) + 2).to(at::kBFloat16);
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor normed = wide * at::rsqrt(wide.pow(2).mean(-1, true) + 1e-6);
  EXPECT_TRUE(at::equal(rms_norm(x, weight, 1e-6), normed.to(at::kBFloat16) * weight));
  EXPECT_FALSE(
      at::equal(rms_norm(x, weight, 1e-6), (normed * weight.to(at::kFloat)).to(at::kBFloat16)))
      << "the test can tell the orders apart";
}

TEST(RmsNorm, GradientsEqualThoseOfThePlainFormula) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    at::Tensor x =
        at::sin(at::arange(5 * 48, at::kFloat) * 0.7).view({5, 48}).to(dtype).requires_grad_(true);
    at::Tensor weight = (at::cos(at::arange(48, at::kFloat)) + 1.5).to(dtype).requires_grad_(true);
    const at::Tensor out_gradient =
        at::cos(at::arange(5 * 48, at::kFloat) * 0.3).view({5, 48}).to(dtype);
    rms_norm(x, weight, 1e-6).backward(out_gradient);
    const at::Tensor x_gradient = x.grad().clone(), weight_gradient = weight.grad().clone();
    at::Tensor x2 = x.detach().to(at::kDouble).requires_grad_(true),
               weight2 = weight.detach().to(at::kDouble).requires_grad_(true);
    (weight2 * x2 * at::rsqrt(x2.pow(2).mean(-1, true) + 1e-6))
        .backward(out_gradient.to(at::kDouble));
    const double tolerance = dtype == at::kFloat ? 1e-6 : 2e-2;
    EXPECT_LT((x_gradient - x2.grad()).norm().item<double>(),
              tolerance * x2.grad().norm().item<double>());
    EXPECT_LT((weight_gradient - weight2.grad()).norm().item<double>(),
              tolerance * weight2.grad().norm().item<double>());
  }
}

TEST(Gelu, BlocksAndMergersUseDifferentForms) {
  const at::Tensor x = at::tensor({2.0f});
  EXPECT_NEAR(gelu_erf(x).item<double>(), 2.0 * 0.5 * (1 + std::erf(2.0 / std::sqrt(2.0))), 1e-6);
  EXPECT_NEAR(gelu_tanh(x).item<double>(),
              0.5 * 2.0 * (1 + std::tanh(std::sqrt(2 / M_PI) * (2.0 + 0.044715 * 8))), 1e-6);
  EXPECT_NE(gelu_erf(x).item<float>(), gelu_tanh(x).item<float>());
}

TEST(InverseFrequencies, AreComputedInFloat32) {
  const at::Tensor frequencies = inverse_frequencies(5000000, 128);
  ASSERT_EQ(frequencies.numel(), 64);
  EXPECT_EQ(frequencies[0].item<float>(), 1.0f);
  int differing = 0;
  for (int64_t j = 0; j < 64; ++j) {
    differing += frequencies[j].item<float>() !=
                 static_cast<float>(std::pow(5000000.0, -2.0 * static_cast<double>(j) / 128));
  }
  EXPECT_EQ(differing, 16) << "a double formula differs in 16 of 64 entries";
}

TEST(RopeTable, EachColumnTurnsWithItsRow) {
  const at::Tensor positions = at::tensor({10, 100, 1000}, at::kLong).view({3, 1});
  const RopeTable table =
      rope_table(positions, rope_columns(10000, {0, 1, 2, 0, 1, 0, 0, 0}, at::kCPU), at::kFloat);
  const at::Tensor frequencies = inverse_frequencies(10000, 16);
  const std::vector<int64_t> wanted = {10, 100, 1000, 10, 100, 10, 10, 10};
  for (size_t j = 0; j < wanted.size(); ++j) {
    const float angle =
        static_cast<float>(wanted[j]) * frequencies[static_cast<int64_t>(j)].item<float>();
    EXPECT_NEAR(table.cos[0][static_cast<int64_t>(j)].item<float>(), std::cos(angle), 1e-5f) << j;
    EXPECT_EQ(table.sin[0][static_cast<int64_t>(j)].item<float>(),
              table.sin[0][static_cast<int64_t>(j) + 8].item<float>());
  }
}

TEST(RopeTable, EqualRowsAreOrdinaryRopeForAnyAxes) {
  const at::Tensor positions = at::arange(5, at::kLong).expand({3, 5});
  const RopeTable a = rope_table(
      positions, rope_columns(500000, {0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 0, 0}, at::kCPU), at::kFloat);
  const RopeTable b = rope_table(
      positions, rope_columns(500000, std::vector<int64_t>(12, 0), at::kCPU), at::kFloat);
  EXPECT_TRUE(at::equal(a.cos, b.cos));
  EXPECT_TRUE(at::equal(a.sin, b.sin));
}

TEST(RopeTable, BatchesKeepTheirShapeAndTakeTheDtypeLast) {
  const RopeTable table = rope_table(at::ones({3, 2, 4}, at::kLong),
                                     rope_columns(10000, {0, 1, 2, 0}, at::kCPU), at::kBFloat16);
  EXPECT_EQ(table.cos.sizes(), (std::vector<int64_t>{2, 4, 8}));
  EXPECT_EQ(table.cos.scalar_type(), at::kBFloat16);
  EXPECT_EQ(table.cos[0][0][0].item<float>(), static_cast<float>(c10::BFloat16(std::cos(1.0f))));
}

TEST(ApplyRope, RotatesHalvesAndItsGradientRotatesBack) {
  const at::Tensor positions = at::arange(3, at::kLong).expand({3, 3});
  const RopeTable table = rope_table(positions, rope_columns(100, {0, 1}, at::kCPU), at::kFloat);
  at::Tensor x = at::arange(24, at::kFloat).view({3, 2, 4}).requires_grad_(true);
  const at::Tensor y = apply_rope(x, table);
  const auto value = [&](int64_t t, int64_t d) { return x[t][1][d].item<float>(); };
  const float c = table.cos[2][1].item<float>(), s = table.sin[2][1].item<float>();
  EXPECT_FLOAT_EQ(y[2][1][1].item<float>(), value(2, 1) * c - value(2, 3) * s);
  EXPECT_FLOAT_EQ(y[2][1][3].item<float>(), value(2, 3) * c + value(2, 1) * s);
  y.backward(y.detach());
  EXPECT_LT((x.grad() - x.detach()).abs().max().item<double>(), 1e-5)
      << "a rotation's gradient is its inverse";
}

TEST(VisionRopeTable, RowsThenColumnsThenAgain) {
  const RopeTable table =
      vision_rope_table(at::tensor({3, 5}, at::kLong).view({1, 2}), 10000, 8, at::kCPU);
  const at::Tensor frequencies = inverse_frequencies(10000, 4);
  ASSERT_EQ(table.cos.sizes(), (std::vector<int64_t>{1, 8}));
  for (int64_t j = 0; j < 8; ++j) {
    const float coordinate = j % 4 < 2 ? 3.0f : 5.0f;
    EXPECT_NEAR(table.cos[0][j].item<float>(),
                std::cos(coordinate * frequencies[j % 2].item<float>()), 1e-6f)
        << j;
  }
}

}  // namespace
}  // namespace rematch
