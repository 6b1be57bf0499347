#include "model/sampled_hash.h"

#include <gtest/gtest.h>

namespace rematch {

TEST(SampledHash, DetectsEveryChangedBitOfASmallTensor) {
  const at::Tensor values = at::arange(1000, at::kFloat);
  EXPECT_EQ(sampled_hash(values), sampled_hash(values.clone()));
  EXPECT_EQ(sampled_hash(values.view({10, 100}).t()),
            sampled_hash(values.view({10, 100}).t().contiguous()));
  for (const int64_t i : {0, 500, 999}) {
    at::Tensor other = values.clone();
    other[i] = -1;
    EXPECT_NE(sampled_hash(other), sampled_hash(values)) << i;
  }
  EXPECT_NE(sampled_hash(at::zeros({4}, at::kBFloat16)), sampled_hash(at::zeros({4}, at::kFloat)));
  EXPECT_EQ(sampled_hash(at::empty({0})), sampled_hash(at::empty({0})));
}

TEST(SampledHash, DetectsADamagedBlockOfALargeTensor) {
  constexpr int64_t kStride = 65536;
  const at::Tensor values = at::arange(5 * (1 << 20) + 1001, at::kInt).to(at::kShort);
  for (const int64_t begin : {int64_t{0}, int64_t{700'001}, values.numel() - kStride / 2}) {
    at::Tensor other = values.clone();
    other.narrow(0, begin, kStride / 2).fill_(3);
    EXPECT_NE(sampled_hash(other), sampled_hash(values)) << begin;
  }
  at::Tensor end = values.clone();
  end[values.numel() - 1] = 3;
  EXPECT_NE(sampled_hash(end), sampled_hash(values)) << "what follows the last whole stride counts";
}

}  // namespace rematch
