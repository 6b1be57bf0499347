#include "kernels/gemm.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/isas.h"
#include "kernels/team.h"

namespace rematch {
namespace {

using kernels::Into;
using kernels::Isa;
using kernels::Storage;
using kernels::Weights;

// A matrix, rows to multiply it with, and what a double says.
struct Problem {
  Problem(int64_t m, int64_t n, int64_t k, Storage storage)
      : num_rows(m),
        num_outputs(n),
        num_inputs(k),
        x(test::noise(m * k, 1)),
        w(test::noise(n * k, 2)),
        bias(test::noise(n, 3)),
        halves(test::as_bfloat16(w)) {
    if (storage == Storage::kBfloat16) {
      for (size_t i = 0; i < w.size(); ++i) w[i] = test::from_bfloat16(halves[i]);
    }
    weights = {.data = storage == Storage::kFloat ? static_cast<const void*>(w.data()) : halves.data(),
               .storage = storage,
               .num_outputs = n,
               .num_inputs = k};
  }

  std::vector<float> product(int64_t rows, Into into = Into::kStore, float before = 0) const {
    std::vector<float> y(static_cast<size_t>(rows * num_outputs), before);
    kernels::gemm(weights, {x.data(), num_inputs}, rows, {y.data(), num_outputs}, {0, num_outputs}, into);
    return y;
  }

  double exact(int64_t row, int64_t output) const {
    double sum = 0;
    for (int64_t i = 0; i < num_inputs; ++i) {
      sum += static_cast<double>(x[static_cast<size_t>(row * num_inputs + i)]) * w[static_cast<size_t>(output * num_inputs + i)];
    }
    return sum;
  }

  int64_t num_rows, num_outputs, num_inputs;
  std::vector<float> x, w, bias;
  std::vector<uint16_t> halves;
  Weights weights;
};

void expect_exact(const Problem& problem, const std::vector<float>& y, double added, const std::string& what) {
  const double tolerance = 1e-6 * std::sqrt(static_cast<double>(problem.num_inputs)) + 1e-6;
  for (int64_t m = 0; m < problem.num_rows; ++m) {
    for (int64_t n = 0; n < problem.num_outputs; ++n) {
      const double bias = problem.weights.bias == nullptr ? 0 : problem.bias[static_cast<size_t>(n)];
      const float value = y[static_cast<size_t>(m * problem.num_outputs + n)];
      ASSERT_NEAR(value, problem.exact(m, n) + bias + added, tolerance) << what << " row " << m << " output " << n;
    }
  }
}

TEST(Gemm, IsTheProductOfEveryShape) {
  test::for_each_isa([](Isa isa) {
    for (const Storage storage : {Storage::kFloat, Storage::kBfloat16}) {
      for (const int64_t k : {1, 3, 16, 31, 64, 97, 192}) {
        for (const int64_t n : {1, 5, 8, 23}) {
          for (const int64_t m : {1, 2, 3, 7, 13, 40, 41, 200}) {
            const Problem problem(m, n, k, storage);
            expect_exact(problem, problem.product(m), 0, fmt::format("{} {}x{}x{}", kernels::isa_name(isa), m, n, k));
          }
        }
      }
    }
  });
}

TEST(Gemm, HoldsWeightsInBlocksWhenThereAreManyRows) {
  test::for_each_isa([](Isa isa) {
    const Problem problem(64, 150, 1024, Storage::kFloat);  // 600 KB: three blocks
    expect_exact(problem, problem.product(64), 0, kernels::isa_name(isa));
  });
}

TEST(Gemm, AddsBiasAndWhatWasThere) {
  test::for_each_isa([](Isa isa) {
    Problem problem(9, 21, 50, Storage::kFloat);
    problem.weights.bias = problem.bias.data();
    expect_exact(problem, problem.product(9), 0, kernels::isa_name(isa));
    expect_exact(problem, problem.product(9, Into::kAdd, 0.25f), 0.25, kernels::isa_name(isa));
  });
}

TEST(Gemm, GivesARowTheSameBitsInAnyCompany) {
  test::for_each_isa([](Isa isa) {
    for (const Storage storage : {Storage::kFloat, Storage::kBfloat16}) {
      for (const int64_t k : {33, 160}) {
        const Problem problem(200, 37, k, storage);
        const std::vector<float> all = problem.product(200);
        for (int64_t m = 1; m <= 66; ++m) {
          const std::vector<float> some = problem.product(m);
          for (size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[i]) << kernels::isa_name(isa) << " " << m << " rows, value " << i;
        }
      }
    }
  });
}

TEST(Gemm, GivesAnOutputTheSameBitsInAnyShare) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t m : {1, 2, 5, 17, 90}) {
      const Problem problem(m, 61, 77, Storage::kFloat);
      const std::vector<float> whole = problem.product(m);
      for (const int threads : {2, 3, 5}) {
        std::vector<float> parts(whole.size());
        for (int i = 0; i < threads; ++i) {
          kernels::gemm(problem.weights, {problem.x.data(), 77}, m, {parts.data(), 61}, kernels::share(61, kernels::kGemmUnit, i, threads));
        }
        ASSERT_EQ(parts, whole) << kernels::isa_name(isa) << " " << m << " rows, " << threads << " shares";
        for (int64_t n = 0; n < 61; ++n) kernels::gemm(problem.weights, {problem.x.data(), 77}, m, {parts.data(), 61}, {n, n + 1});
        ASSERT_EQ(parts, whole) << kernels::isa_name(isa) << " " << m << " rows, one output at a time";
      }
    }
  });
}

TEST(Gemm, LeavesTheRestOfARowAlone) {
  test::for_each_isa([](Isa) {
    const Problem problem(3, 24, 40, Storage::kFloat);
    std::vector<float> y(3 * 30, 7.0f);
    kernels::gemm(problem.weights, {problem.x.data(), 40}, 3, {y.data(), 30}, {5, 17});
    for (size_t i = 0; i < y.size(); ++i) {
      const bool is_inside = i % 30 >= 5 && i % 30 < 17;
      EXPECT_EQ(y[i] == 7.0f, !is_inside) << i;
    }
  });
}

TEST(Share, CoversEverythingOnceInWholeUnits) {
  for (const int64_t size : {0, 1, 7, 8, 61, 100}) {
    for (const int workers : {1, 2, 3, 16}) {
      int64_t next = 0;
      for (int i = 0; i < workers; ++i) {
        const kernels::Range range = kernels::share(size, 8, i, workers);
        EXPECT_EQ(range.begin, next);
        EXPECT_TRUE(range.end == size || range.end % 8 == 0) << range.end;
        next = range.end;
      }
      EXPECT_EQ(next, size);
    }
  }
}

}  // namespace
}  // namespace rematch
