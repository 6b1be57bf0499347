#include "model/kernels/rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/isas.h"

namespace rematch {
namespace {

using kernels::Isa;
using kernels::Storage;

constexpr int64_t kWidths[] = {1, 2, 7, 16, 30, 64, 67, 192, 1000};

std::vector<float> scaled(std::vector<float> values, float by) {
  for (float& value : values) value *= by;
  return values;
}

TEST(Exp, IsWithinTwoToTheMinus22OfTheTruth) {
  test::for_each_isa([](Isa isa) {
    std::vector<float> x;
    for (double value = -87.0; value <= 87.0; value += 0.00317)
      x.push_back(static_cast<float>(value));
    std::vector<float> y(x.size());
    kernels::exp(x.data(), static_cast<int64_t>(x.size()), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, std::abs(y[i] / std::exp(static_cast<double>(x[i])) - 1.0));
    EXPECT_LT(worst, std::ldexp(1.0, -22)) << kernels::isa_name(isa);
  });
}

TEST(Exp, IsExactAtZeroAndTameFarAway) {
  test::for_each_isa([](Isa isa) {
    const std::vector<float> x{0.0f, -0.0f, -88.0f, -1e30f, -HUGE_VALF, 89.0f, 1e30f, HUGE_VALF};
    std::vector<float> y(x.size());
    kernels::exp(x.data(), static_cast<int64_t>(x.size()), y.data());
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    for (size_t i = 2; i < 5; ++i) EXPECT_EQ(y[i], 0.0f) << kernels::isa_name(isa) << " " << x[i];
    for (size_t i = 5; i < 8; ++i)
      EXPECT_NEAR(y[i] / std::exp(88.0), 1.0, 1e-5) << kernels::isa_name(isa) << " " << x[i];
  });
}

TEST(SoftmaxSum, IsTheSumForEveryWidthWhereverTheLargestIs) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t width : {1, 2, 7, 16, 67, 1000, 1024, 1025, 5003}) {
      for (const int64_t peak : {int64_t{0}, width / 2, width - 1}) {
        std::vector<float> x = scaled(test::noise(width, 3), 20);
        x[static_cast<size_t>(peak)] = 31.5f;
        double sum = 0;
        for (const float value : x) sum += std::exp(static_cast<double>(value) - 31.5);
        const kernels::SoftmaxSum found = kernels::softmax_sum(x.data(), width);
        ASSERT_EQ(found.largest, 31.5f);
        ASSERT_NEAR(found.sum / sum, 1.0, std::ldexp(1.0, -20))
            << kernels::isa_name(isa) << " " << width << " " << peak;
        ASSERT_TRUE(found.is_finite);
      }
    }
  });
}

TEST(SoftmaxSum, SaysSoWhereverAValueIsNotFinite) {
  test::for_each_isa([](Isa isa) {
    for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      for (const size_t at : {size_t{0}, size_t{17}, size_t{1023}, size_t{2040}, size_t{2049}}) {
        std::vector<float> x = test::noise(2050, 4);
        x[at] = bad;
        EXPECT_FALSE(kernels::softmax_sum(x.data(), 2050).is_finite)
            << kernels::isa_name(isa) << " " << bad << " " << at;
      }
    }
    const std::vector<float> far{3.4e38f, -3.4e38f, 0};
    EXPECT_EQ(kernels::softmax_sum(far.data(), 3).sum, 1) << kernels::isa_name(isa);
  });
}

TEST(RmsNorm, IsTheFormulaForEveryWidth) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t width : kWidths) {
      const std::vector<float> x = scaled(test::noise(width, 5), 3), weight = test::noise(width, 6);
      double squares = 0;
      for (const float value : x) squares += static_cast<double>(value) * value;
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-6);
      std::vector<float> y(x.size());
      kernels::rms_norm(x.data(), weight.data(), width, 1e-6f, y.data());
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(y[i], x[i] * scale * weight[i], 2e-6) << kernels::isa_name(isa) << " " << width;
      std::vector<float> in_place = x;
      kernels::rms_norm(in_place.data(), weight.data(), width, 1e-6f, in_place.data());
      EXPECT_EQ(in_place, y);
    }
  });
}

TEST(LayerNorm, IsTheFormulaForEveryWidth) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t width : kWidths) {
      std::vector<float> x = scaled(test::noise(width, 7), 2);
      for (float& value : x) value += 1.5f;
      const std::vector<float> weight = test::noise(width, 8), bias = test::noise(width, 9);
      double mean = 0, squares = 0;
      for (const float value : x) mean += value / static_cast<double>(width);
      for (const float value : x) squares += (value - mean) * (value - mean);
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-6);
      std::vector<float> y(x.size());
      kernels::layer_norm(x.data(), weight.data(), bias.data(), width, 1e-6f, y.data());
      // One value alone differs from its mean by rounding only, which the square root of eps
      // magnifies a thousandfold.
      const double tolerance = width < 3 ? 1e-3 : 5e-6;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(y[i], (x[i] - mean) * scale * weight[i] + bias[i], tolerance)
            << kernels::isa_name(isa) << " " << width;
      }
    }
  });
}

TEST(Rotate, TurnsTheHalvesOfAHead) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t half : {1, 4, 8, 12, 16, 20, 64}) {
      const std::vector<float> x = test::noise(2 * half, 10), cos = test::noise(half, 11),
                               sin = test::noise(half, 12);
      std::vector<float> y = x;
      kernels::rotate(y.data(), cos.data(), sin.data(), 2 * half);
      for (size_t j = 0; j < cos.size(); ++j) {
        const double a = x[j], b = x[j + cos.size()];
        ASSERT_NEAR(y[j], a * cos[j] - b * sin[j], 1e-6) << kernels::isa_name(isa) << " " << half;
        ASSERT_NEAR(y[j + cos.size()], b * cos[j] + a * sin[j], 1e-6)
            << kernels::isa_name(isa) << " " << half;
      }
    }
  });
}

TEST(Activations, AreTheFormulas) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t width : kWidths) {
      const std::vector<float> x = scaled(test::noise(width, 13), 12), up = test::noise(width, 14);
      std::vector<float> silu = x, gelu = x, erf = x, sum = x, gated = up;
      kernels::silu_mul(silu.data(), up.data(), width);
      kernels::gelu_tanh(gelu.data(), width);
      kernels::gelu_erf(erf.data(), width);
      kernels::add(sum.data(), up.data(), width);
      kernels::sigmoid_mul(gated.data(), x.data(), width);
      for (size_t i = 0; i < x.size(); ++i) {
        const double value = x[i],
                     u = std::sqrt(2.0 / M_PI) * (value + 0.044715 * value * value * value);
        ASSERT_NEAR(silu[i], value / (1.0 + std::exp(-value)) * up[i], 3e-6)
            << kernels::isa_name(isa) << " " << value;
        ASSERT_NEAR(gelu[i], 0.5 * value * (1.0 + std::tanh(u)), 3e-6)
            << kernels::isa_name(isa) << " " << value;
        ASSERT_NEAR(erf[i], 0.5 * value * (1.0 + std::erf(value / std::sqrt(2.0))), 2e-6)
            << kernels::isa_name(isa) << " " << value;
        ASSERT_NEAR(gated[i], up[i] / (1.0 + std::exp(-value)), 3e-6)
            << kernels::isa_name(isa) << " " << value;
        ASSERT_EQ(sum[i], x[i] + up[i]);
      }
    }
  });
}

TEST(Stored, BfloatsAreRoundedToNearestEven) {
  test::for_each_isa([](Isa isa) {
    // 1 + 2^-8 lies between two bfloat16; the even one is 1. 1 + 3·2^-8 goes up to 1 + 2^-6.
    std::vector<float> x{1.0f, 1.00390625f, 1.01171875f, -1.00390625f, 1.0039064f, 0.0f};
    const std::vector<float> expected{1.0f, 1.0f, 1.015625f, -1.0f, 1.0078125f, 0.0f};
    std::vector<uint16_t> halves(x.size());
    std::vector<float> back(x.size());
    kernels::store_as(x.data(), static_cast<int64_t>(x.size()), Storage::kBfloat16, halves.data());
    kernels::load_from(halves.data(), Storage::kBfloat16, static_cast<int64_t>(x.size()),
                       back.data());
    EXPECT_EQ(back, expected) << kernels::isa_name(isa);
    x = test::noise(53, 15);
    std::vector<float> copy(x.size());
    kernels::store_as(x.data(), 53, Storage::kFloat, copy.data());
    kernels::load_from(copy.data(), Storage::kFloat, 53, copy.data());
    EXPECT_EQ(copy, x);
  });
}

}  // namespace
}  // namespace rematch
