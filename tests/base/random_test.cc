#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace rematch {

TEST(RandomPermutation, DependsOnTheKeyOnly) {
  EXPECT_EQ(random_permutation(random_key({1, 2}), 50), random_permutation(random_key({1, 2}), 50));
  EXPECT_NE(random_permutation(random_key({1, 2}), 50), random_permutation(random_key({2, 1}), 50));
  auto order = random_permutation(7, 1000);
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(RandomPermutation, GivesEveryOrderTheSameChance) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t key = 0; key < 6000; ++key) ++counts[random_permutation(key, 3)];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(RandomUniform, FillsTheUnitIntervalEvenly) {
  int counts[10] = {};
  for (uint64_t i = 0; i < 100000; ++i) ++counts[static_cast<int>(random_uniform(3, i) * 10)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
}

TEST(RandomNormal, HasTheMomentsOfANormal) {
  double sum = 0, squares = 0, beyond_two = 0;
  constexpr int kDraws = 100000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double value = random_normal(5, i);
    sum += value;
    squares += value * value;
    beyond_two += std::abs(value) > 2;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(beyond_two / kDraws, 0.0455, 0.003);
}

}  // namespace rematch
