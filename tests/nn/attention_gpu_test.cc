#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/nn/attention.h"
#include "nn/paged_case.h"

namespace rematch {
namespace {

/// The output and the gradients of its sum of squares, float32 on the CPU.
std::vector<at::Tensor> with_gradients(const std::vector<at::Tensor>& values, at::ScalarType dtype,
                                       const std::vector<int64_t>& lens, bool is_causal) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& value : values)
    leaves.push_back(value.to(at::kCUDA, dtype).requires_grad_());
  const at::Tensor out = SegmentAttention(lens, is_causal).attend(leaves[0], leaves[1], leaves[2]);
  std::vector<at::Tensor> results =
      torch::autograd::grad({out.to(at::kFloat).square().sum()}, leaves);
  results.push_back(out.detach());
  for (at::Tensor& result : results) result = result.cpu().to(at::kFloat);
  return results;
}

}  // namespace

// Float32 goes through SDPA by groups, bfloat16 through flash attention by cumulative lengths.
TEST(AttentionGpu, CumulativeLengthsEqualSdpaForwardAndBackward) {
  if (!at::hasCUDA()) GTEST_SKIP() << "this torch build and machine have no CUDA device";
  const std::vector<int64_t> lens{700, 1, 64, 65, 300, 300, 17};
  const int64_t num_rows = 1447;
  at::manual_seed(3);
  for (const int64_t head_dim : {64, 72, 128, 256}) {
    if (choose_attention({at::Device(at::kCUDA, 0), at::kBFloat16, head_dim}) !=
        AttentionKernel::kVarlen) {
      if (head_dim > 192) continue;
      GTEST_SKIP() << "no flash";
    }
    for (const int64_t num_kv_heads : {2, 8}) {
      std::vector<at::Tensor> values;
      for (const int64_t heads : {int64_t{8}, num_kv_heads, num_kv_heads}) {
        values.push_back(at::randn({num_rows, heads, head_dim}).to(at::kBFloat16).to(at::kFloat));
      }
      for (const bool is_causal : {true, false}) {
        const auto found = with_gradients(values, at::kBFloat16, lens, is_causal),
                   wanted = with_gradients(values, at::kFloat, lens, is_causal);
        for (size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_LE((found[i] - wanted[i]).norm().item<double>(),
                    0.02 * wanted[i].norm().item<double>())
              << head_dim << ", result " << i;
        }
      }
    }
  }
}

TEST(AttentionGpu, DecodesInPages) {
  if (!at::hasCUDA()) GTEST_SKIP() << "this torch build and machine have no CUDA device";
  for (const int64_t head_dim : {64, 128, 256}) {
    if (!has_paged_attention({at::Device(at::kCUDA, 0), at::kBFloat16, head_dim})) {
      if (head_dim > 192) continue;
      GTEST_SKIP() << "no flash";
    }
    test::expect_pages_are_read(at::Device(at::kCUDA, 0), head_dim);
  }
}

}  // namespace rematch
