#include "model/kernels/product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/isas.h"

namespace rematch {
namespace {

using kernels::Isa;
using kernels::ProductSize;
using kernels::Strided;

// a·b in double, at one place.
double exact(const Strided& a, const Strided& b, int64_t inputs, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < inputs; ++k) {
    sum += static_cast<double>(a.at(row, k)) * static_cast<double>(b.at(k, column));
  }
  return sum;
}

void check(const ProductSize& size, bool turns_a, bool turns_b, float sign, bool adds, Isa isa) {
  const std::vector<float> left = test::noise(size.rows * size.inputs, 1),
                           right = test::noise(size.inputs * size.columns, 2),
                           before = test::noise(size.rows * size.columns, 3);
  const Strided a =
      turns_a ? Strided{left.data(), 1, size.rows} : Strided{left.data(), size.inputs, 1};
  const Strided b =
      turns_b ? Strided{right.data(), 1, size.inputs} : Strided{right.data(), size.columns, 1};
  std::vector<float> c = before;
  kernels::product(a, b, size, sign, adds, c.data());
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < size.columns; ++j) {
      const auto at = static_cast<size_t>(i * size.columns + j);
      const double wanted = (adds ? static_cast<double>(before[at]) : 0.0) +
                            static_cast<double>(sign) * exact(a, b, size.inputs, i, j);
      ASSERT_NEAR(c[at], wanted, 2e-5) << kernels::isa_name(isa) << " " << i << " " << j;
    }
  }
}

TEST(Product, EqualsTheSumInDoublesForEverySizeAndStride) {
  test::for_each_isa([](Isa isa) {
    for (const ProductSize& size : {ProductSize{64, 128, 64},
                                    {64, 64, 128},
                                    {1, 1, 1},
                                    {5, 6, 8},
                                    {128, 40, 17},
                                    {3, 100, 2},
                                    {6, 0, 4},
                                    {4, 33, 0}}) {
      for (const bool turns_a : {false, true}) {
        for (const bool turns_b : {false, true}) {
          check(size, turns_a, turns_b, 1, false, isa);
          check(size, turns_a, turns_b, -1, true, isa);
        }
      }
    }
  });
}

}  // namespace
}  // namespace rematch
