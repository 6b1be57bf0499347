// Cost of attention over a packed row: it grows with the sum of squared segment lengths, never
// with the square of the row.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"
#include "model/nn/attention.h"
#include "model/nn/segment_plan.h"
#include "nn/memory_meter.h"

namespace rematch {
namespace {

constexpr int64_t kMaxTokens = 16000;

int64_t sum_of(const std::vector<int64_t>& lens) {
  return std::accumulate(lens.begin(), lens.end(), int64_t{0});
}

// Scores that the kernel computes for one head when it looks at whole squares; causal blocks halve
// that at best.
int64_t num_scores(const std::vector<int64_t>& lens) {
  const SegmentPlan plan(lens, {.may_pad = true}, at::kCPU);
  int64_t total = 0;
  for (const SegmentPlan::Group& group : plan.groups())
    total += group.num_segments * group.len * group.len;
  return total;
}

// 1/0.85² = 1.384 for what padding to 85 % may add, and a 64-square for each segment so short that
// a separate call would cost more.
int64_t score_bound(const std::vector<int64_t>& lens) {
  double bound = 0;
  for (const int64_t len : lens)
    bound += len <= 64 ? 64.0 * 64.0 : static_cast<double>(len * len) / (0.85 * 0.85);
  return static_cast<int64_t>(bound);
}

// Lengths spread evenly over the orders of magnitude between `shortest` and `longest`, until a row
// of 16 000 tokens is full.
std::vector<int64_t> random_mix(uint64_t seed, double shortest, double longest) {
  const uint64_t key = random_key({seed, 77});
  std::vector<int64_t> lens;
  for (uint64_t i = 0;; ++i) {
    const auto len =
        static_cast<int64_t>(shortest * std::pow(longest / shortest, random_uniform(key, i)));
    if (sum_of(lens) + len > kMaxTokens) return lens;
    lens.push_back(len);
  }
}

struct Cost {
  int64_t peak_bytes = 0, largest_bytes = 0;
};

// Forward and backward of one layer's attention with grouped heads.
Cost memory_of(const std::vector<int64_t>& lens) {
  constexpr int64_t kHeads = 2, kKvHeads = 1, kHeadDim = 16;
  const auto make = [&](int64_t heads) {
    return at::rand({sum_of(lens), heads, kHeadDim}).requires_grad_(true);
  };
  const at::Tensor q = make(kHeads), k = make(kKvHeads), v = make(kKvHeads);
  const test::MemoryMeter meter;
  VarlenCausalAttention attention(lens);
  attention.attend(0, q, k, v).sum().backward();
  return {meter.peak_bytes(), meter.largest_bytes()};
}

}  // namespace

TEST(AttentionCost, RandomMixesOfSixteenThousandTokensStayWithinAConstantOfTheSumOfSquares) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const double shortest = seed % 2 == 0 ? 16 : 65, longest = seed % 3 == 0 ? 600 : 8000;
    const std::vector<int64_t> lens = random_mix(seed, shortest, longest);
    ASSERT_GT(sum_of(lens), kMaxTokens / 3);
    EXPECT_LE(num_scores(lens), score_bound(lens)) << "seed " << seed;
    // Packing pays: many segments cost far less than their row squared.
    if (longest == 600) {
      EXPECT_LT(num_scores(lens), kMaxTokens * kMaxTokens / 25) << "seed " << seed;
    }
  }
}

TEST(AttentionCost, LengthsMadeToHurtStayWithinTheConstant) {
  std::vector<int64_t> stairs, short_ones(2000, 1);
  for (int64_t len = 3000; len > 64;
       len = static_cast<int64_t>(std::ceil(static_cast<double>(len) * 0.851)))
    stairs.push_back(len);
  short_ones.push_back(64);
  for (const auto& lens : {stairs,
                           short_ones,
                           std::vector<int64_t>{8000, 6799, 1000},
                           {65, 55, 54, 64, 1},
                           {16000},
                           {}}) {
    EXPECT_LE(num_scores(lens), score_bound(lens));
  }
}

RC_GTEST_PROP(AttentionCostProperty, AnyMixStaysWithinTheConstant, ()) {
  const auto lens = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 700));
  RC_ASSERT(num_scores(lens) <= score_bound(lens));
  RC_ASSERT(num_scores(lens) >=
            std::inner_product(lens.begin(), lens.end(), lens.begin(), int64_t{0}));
}

TEST(AttentionCost, MemoryOfARowGrowsWithItsTokensNotWithTheirSquare) {
  const Cost one = memory_of({1000});
  const Cost sixteen = memory_of(std::vector<int64_t>(16, 1000));
  EXPECT_LT(sixteen.peak_bytes, 16 * one.peak_bytes);
  // A mask or the scores of a single head would be 16 000² entries.
  EXPECT_LT(sixteen.largest_bytes, int64_t{16000} * 16000 / 64);
  EXPECT_LT(sixteen.peak_bytes, int64_t{16000} * 16000 / 8);
}

TEST(AttentionCost, MixedLengthsNeedAsLittleMemoryAsEqualOnes) {
  std::vector<int64_t> mixed;
  for (int64_t i = 0; i < 16; ++i) mixed.push_back(500 + (i * 7 % 16) * 1000 / 15);
  ASSERT_NEAR(static_cast<double>(sum_of(mixed)), 16000, 16);
  // The copies into groups and back, padded by at most 1/0.85, are all that comes on top.
  EXPECT_LT(memory_of(mixed).peak_bytes, 4 * memory_of(std::vector<int64_t>(16, 1000)).peak_bytes);
  EXPECT_LT(memory_of(mixed).largest_bytes, int64_t{16000} * 16000 / 64);
}

TEST(MemoryMeter, SeesWhatIsAliveAtOnceAndTheLargestTensor) {
  const at::Tensor before = at::empty({1000}, at::kFloat);
  const test::MemoryMeter meter;
  {
    const at::Tensor first = at::empty({1000}, at::kFloat), second = at::empty({500}, at::kFloat);
  }
  const at::Tensor third = at::empty({1200}, at::kFloat);
  EXPECT_GE(meter.peak_bytes(), 6000);
  EXPECT_LE(meter.peak_bytes(), 6200);
  EXPECT_GE(meter.largest_bytes(), 4800);
  EXPECT_LE(meter.largest_bytes(), 4900);
}

}  // namespace rematch
