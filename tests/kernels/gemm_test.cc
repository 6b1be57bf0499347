#include "model/kernels/gemm.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/isas.h"
#include "model/kernels/team.h"

namespace rematch {
namespace {

using kernels::Into;
using kernels::Isa;
using kernels::Matrix;
using kernels::PackedWeights;
using kernels::Storage;

// A matrix, rows to multiply it with, and what a double says.
struct Product {
  Product(int64_t m, int64_t n, int64_t k, Storage storage)
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
    const Matrix matrix{
        .data = storage == Storage::kFloat ? static_cast<const void*>(w.data()) : halves.data(),
        .storage = storage,
        .num_outputs = n,
        .num_inputs = k};
    packed.resize(static_cast<size_t>(kernels::packed_bytes(n, k, storage)), 0xFF);
    kernels::pack(&matrix, 1, {0, kernels::num_panels(n)}, packed.data());
    weights = {.data = packed.data(), .storage = storage, .num_outputs = n, .num_inputs = k};
  }

  // In two parts each way, as workers share it.
  kernels::InterleavedRows rows_of_x(int64_t rows) const {
    interleaved.assign(static_cast<size_t>(rows * num_inputs), NAN);
    const kernels::InterleavedRows out{interleaved.data(), rows, num_inputs};
    for (const kernels::Range some_rows :
         {kernels::Range{0, rows / 3}, kernels::Range{rows / 3, rows}}) {
      for (const kernels::Range columns :
           {kernels::Range{0, num_inputs / 2}, kernels::Range{num_inputs / 2, num_inputs}}) {
        kernels::interleave({x.data(), num_inputs}, some_rows, columns, out);
      }
    }
    return out;
  }

  std::vector<float> product(int64_t rows, Into into = Into::kStore, float before = 0) const {
    std::vector<float> y(static_cast<size_t>(rows * num_outputs), before);
    kernels::gemm(weights, rows_of_x(rows), {y.data(), num_outputs}, {0, num_outputs}, into);
    return y;
  }

  double exact(int64_t row, int64_t output) const {
    double sum = 0;
    for (int64_t i = 0; i < num_inputs; ++i) {
      sum += static_cast<double>(x[static_cast<size_t>(row * num_inputs + i)]) *
             w[static_cast<size_t>(output * num_inputs + i)];
    }
    return sum;
  }

  int64_t num_rows, num_outputs, num_inputs;
  std::vector<float> x, w, bias;
  std::vector<uint16_t> halves;
  std::vector<uint8_t> packed;
  mutable std::vector<float> interleaved;
  PackedWeights weights;
};

void expect_exact(const Product& problem, const std::vector<float>& y, double added,
                  const std::string& what) {
  const double tolerance = 1e-6 * std::sqrt(static_cast<double>(problem.num_inputs)) + 1e-6;
  for (int64_t m = 0; m < problem.num_rows; ++m) {
    for (int64_t n = 0; n < problem.num_outputs; ++n) {
      const double bias =
          problem.weights.bias == nullptr ? 0 : problem.bias[static_cast<size_t>(n)];
      const float value = y[static_cast<size_t>(m * problem.num_outputs + n)];
      ASSERT_NEAR(value, problem.exact(m, n) + bias + added, tolerance)
          << what << " row " << m << " output " << n;
    }
  }
}

TEST(Gemm, IsTheProductOfEveryShape) {
  test::for_each_isa([](Isa isa) {
    for (const Storage storage : {Storage::kFloat, Storage::kBfloat16}) {
      for (const int64_t k : {1, 3, 16, 31, 192}) {
        for (const int64_t n : {1, 5, 23, 32, 45, 65, 129}) {
          for (const int64_t m : {1, 2, 3, 6, 7, 13, 14, 15, 41}) {
            const Product problem(m, n, k, storage);
            expect_exact(problem, problem.product(m), 0,
                         fmt::format("{} {}x{}x{}", kernels::isa_name(isa), m, n, k));
          }
        }
      }
    }
  });
}

TEST(Gemm, AddsUpLongRowsInChains) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t k : {511, 512, 513, 1300}) {
      const Product problem(20, 50, k, Storage::kFloat);
      expect_exact(problem, problem.product(20), 0,
                   fmt::format("{}, {} inputs", kernels::isa_name(isa), k));
    }
  });
}

TEST(Pack, PutsMatricesBelowEachOther) {
  const std::vector<float> a = test::noise(45 * 7, 1), b = test::noise(3 * 7, 2),
                           c = test::noise(20 * 7, 3);
  const auto matrix = [](const std::vector<float>& values) {
    return Matrix{.data = values.data(),
                  .num_outputs = static_cast<int64_t>(values.size() / 7),
                  .num_inputs = 7};
  };
  const Matrix parts[] = {matrix(a), matrix(b), matrix(c)};
  std::vector<float> packed(
      static_cast<size_t>(kernels::packed_bytes(68, 7, Storage::kFloat)) / sizeof(float), -1.0f);
  for (int64_t panel = 0; panel < 3; ++panel)
    kernels::pack(parts, 3, {panel, panel + 1}, packed.data());
  std::vector<float> rows = a;
  rows.insert(rows.end(), b.begin(), b.end());
  rows.insert(rows.end(), c.begin(), c.end());
  for (size_t n = 0; n < 96; ++n) {
    for (size_t k = 0; k < 7; ++k)
      EXPECT_EQ(packed[(n / 32 * 7 + k) * 32 + n % 32], n < 68 ? rows[n * 7 + k] : 0.0f)
          << n << " " << k;
  }
}

TEST(Gemm, AddsBiasAndWhatWasThere) {
  test::for_each_isa([](Isa isa) {
    Product problem(9, 21, 50, Storage::kFloat);
    problem.weights.bias = problem.bias.data();
    expect_exact(problem, problem.product(9), 0, kernels::isa_name(isa));
    expect_exact(problem, problem.product(9, Into::kAdd, 0.25f), 0.25, kernels::isa_name(isa));
  });
}

TEST(Gemm, GivesARowTheSameBitsInAnyCompany) {
  test::for_each_isa([](Isa isa) {
    for (const Storage storage : {Storage::kFloat, Storage::kBfloat16}) {
      for (const int64_t k : {33, 160, 1300}) {
        const Product problem(300, 37, k, storage);
        const std::vector<float> all = problem.product(300);
        for (int64_t m = 1; m <= 66; m += k < 1000 ? 1 : 5) {
          const std::vector<float> some = problem.product(m);
          for (size_t i = 0; i < some.size(); ++i)
            ASSERT_EQ(some[i], all[i])
                << kernels::isa_name(isa) << " " << m << " rows, value " << i;
        }
      }
    }
  });
}

TEST(Gemm, GivesAnOutputTheSameBitsInAnyShare) {
  test::for_each_isa([](Isa isa) {
    for (const int64_t m : {1, 2, 5, 17, 90}) {
      const Product problem(m, 189, 77, Storage::kFloat);
      const std::vector<float> whole = problem.product(m);
      for (const int threads : {2, 3, 5}) {
        std::vector<float> parts(whole.size());
        for (int i = 0; i < threads; ++i) {
          kernels::gemm(problem.weights, problem.rows_of_x(m), {parts.data(), 189},
                        kernels::share(189, kernels::kPanel, i, threads));
        }
        ASSERT_EQ(parts, whole) << kernels::isa_name(isa) << " " << m << " rows, " << threads
                                << " shares";
        for (int64_t n = 0; n < 189; n += 32) {
          kernels::gemm(problem.weights, problem.rows_of_x(m), {parts.data(), 189},
                        {n, std::min<int64_t>(189, n + 32)});
        }
        ASSERT_EQ(parts, whole) << kernels::isa_name(isa) << " " << m
                                << " rows, one panel at a time";
      }
    }
  });
}

TEST(Gemm, LeavesTheRestOfARowAlone) {
  test::for_each_isa([](Isa) {
    const Product problem(3, 100, 40, Storage::kFloat);
    for (const kernels::Range columns :
         {kernels::Range{32, 64}, kernels::Range{96, 100}, kernels::Range{0, 100}}) {
      std::vector<float> y(3 * 110, 7.0f);
      kernels::gemm(problem.weights, problem.rows_of_x(3), {y.data(), 110}, columns);
      for (size_t i = 0; i < y.size(); ++i) {
        const auto column = static_cast<int64_t>(i % 110);
        EXPECT_EQ(y[i] == 7.0f, column < columns.begin || column >= columns.end) << i;
      }
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
