#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/isas.h"
#include "model/kernels/gemm_kernel.h"

// The templates as AVX-512 uses them, sixteen lanes and thirty-two registers, on any processor: its
// tiles span two panels.

namespace rematch {
namespace {

using kernels::Into;
using kernels::kPanel;

struct VecWide {
  typedef float F __attribute__((vector_size(64)));
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 32;

  static F zero() { return F{}; }
  static F set1(float x) { return F{} + x; }
  static F load(const float* p) {
    F x;
    std::memcpy(&x, p, sizeof(x));
    return x;
  }
  static F load(const float* p, int n) {
    F x{};
    for (int i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  static void store(float* p, F x) { std::memcpy(p, &x, sizeof(x)); }
  static void store(float* p, F x, int n) {
    for (int i = 0; i < n; ++i) p[i] = x[i];
  }
  static F add(F a, F b) { return a + b; }
  static F fma(F a, F b, F c) { return a * b + c; }
};

using Kernel = kernels::GemmKernel<VecWide, float>;

// In the order that gemm.h promises.
float expected(const float* x, const float* w, int64_t num_inputs) {
  float total = 0;
  for (int64_t begin = 0; begin < num_inputs; begin += kernels::kChain) {
    float sum = 0;
    for (int64_t k = begin; k < std::min(num_inputs, begin + kernels::kChain); ++k)
      sum = x[k] * w[k] + sum;
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

TEST(WideGemm, AddsEveryProductInOrderWhateverTheTiles) {
  for (const int64_t num_inputs : {1, 31, 192, 513, 1300}) {
    for (const int64_t num_outputs : {1, 32, 45, 64, 65, 129}) {
      for (const int64_t num_rows : {1, 2, 6, 7, 14, 15, 28, 41, 260}) {
        if (num_rows > 100 && num_inputs > 200) continue;
        const std::vector<float> x = test::noise(num_rows * num_inputs, 1);
        const std::vector<float> w = test::noise(num_outputs * num_inputs, 2);
        const std::vector<float> bias = test::noise(num_outputs, 3);
        const kernels::Matrix matrix{
            .data = w.data(), .num_outputs = num_outputs, .num_inputs = num_inputs};
        std::vector<float> packed(
            static_cast<size_t>(kernels::num_panels(num_outputs) * kPanel * num_inputs)),
            interleaved(x.size());
        kernels::pack(&matrix, 1, {0, kernels::num_panels(num_outputs)}, packed.data());
        const kernels::InterleavedRows rows{interleaved.data(), num_rows, num_inputs};
        Kernel::interleave({x.data(), num_inputs}, {0, num_rows}, {0, num_inputs}, rows);
        std::vector<float> y(static_cast<size_t>(num_rows * num_outputs), 0.5f);
        Kernel::run({.data = packed.data(),
                     .num_outputs = num_outputs,
                     .num_inputs = num_inputs,
                     .bias = bias.data()},
                    rows, {y.data(), num_outputs}, {0, num_outputs}, Into::kAdd);
        for (int64_t i = 0; i < num_rows * num_outputs; ++i) {
          const int64_t row = i / num_outputs, output = i % num_outputs;
          const float sum =
              expected(x.data() + row * num_inputs, w.data() + output * num_inputs, num_inputs);
          ASSERT_EQ(y[static_cast<size_t>(i)], (sum + bias[static_cast<size_t>(output)]) + 0.5f)
              << num_rows << "x" << num_outputs << "x" << num_inputs << ", row " << row
              << ", output " << output;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rematch
