#include "engine/rollout/native/cache_size.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace rematch {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

int64_t blocks(const std::vector<int64_t>& prompt_lens, int64_t max_new_tokens,
               const NativeSettings& options, int64_t free_bytes = 100 * kGib,
               int64_t block_bytes = 1024) {
  return num_cache_blocks(
      {.prompt_lens = prompt_lens, .max_new_tokens = max_new_tokens, .block_bytes = block_bytes},
      options, free_bytes);
}

}  // namespace

TEST(CacheSize, HoldsTheLongestThatRunTogether) {
  // Blocks of 16: 10 + 6 tokens take one and may touch a second, 100 + 6 take seven, one is spare.
  EXPECT_EQ(blocks({10}, 6, {}), 2 + 1);
  EXPECT_EQ(blocks({10, 100, 10}, 6, {}), 2 + 7 + 2 + 1);
  EXPECT_EQ(blocks({10, 100, 10}, 6, {.max_num_seqs = 1}), 7 + 1);
}

TEST(CacheSize, StaysWithinWhatTheUserOrTheMachineGives) {
  EXPECT_EQ(blocks({1000}, 1000000, {.kv_cache_gib = 0.5}, 100 * kGib, 1 << 20), 512);
  EXPECT_EQ(blocks({1000}, 1000000, {.kv_cache_gib = 0.5}, /*free_bytes=*/0, 1 << 20), 512)
      << "what the user says counts";
  EXPECT_EQ(blocks({1000}, 1000000, {}, 16 << 20), 4 << 10) << "a quarter of what is free";
  EXPECT_EQ(blocks({1}, 1, {.kv_cache_gib = 1e-9}), 0);
  EXPECT_EQ(blocks({1}, 1, {}, 0), 0);
}

TEST(CacheSize, TakesAnyLength) {
  const std::vector<int64_t> many(1000, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(blocks(many, std::numeric_limits<int32_t>::max(),
                   {.max_num_seqs = 1000, .kv_cache_gib = 1e30, .block_len = 1}, 0, 1),
            std::numeric_limits<int32_t>::max());
}

TEST(CacheSize, StatesComeBeforeBlocks) {
  const std::vector<int64_t> lens(8, 10);
  const NativeSettings options{.kv_cache_gib = 1};  // 1024 MiB
  // A sequence takes a state of 100 MiB and two blocks of 1 MiB.
  const auto sizes = [&](int64_t num_repeated, const NativeSettings& settings) {
    const CacheDemand demand{lens, 6, 1 << 20, 100 << 20, num_repeated};
    return std::pair(num_cache_states(demand, settings, 0), num_cache_blocks(demand, settings, 0));
  };
  EXPECT_EQ(sizes(0, options), std::pair(int64_t{8}, int64_t{17})) << "one for each prompt";
  EXPECT_EQ(sizes(1, options), std::pair(int64_t{9}, int64_t{17})) << "and a saved one";
  EXPECT_EQ(sizes(8, options).first, 10) << "as many as there is room for";
  EXPECT_EQ(sizes(0, {.max_num_seqs = 3, .kv_cache_gib = 1}).first, 3);
  EXPECT_EQ(sizes(2, {.kv_cache_gib = 0.25}), std::pair(int64_t{2}, int64_t{17}))
      << "two sequences run at a time";
  EXPECT_EQ(sizes(0, {.kv_cache_gib = 0.01}), std::pair(int64_t{1}, int64_t{0}));
  const CacheDemand none{lens, 6, 1 << 20};
  EXPECT_EQ(num_cache_states(none, options, 0), 0);
}

TEST(CacheSize, KnowsHowMuchMemoryIsFree) {
  EXPECT_GT(free_memory_bytes(c10::Device(c10::kCPU)), 1 << 20);
  EXPECT_LT(free_memory_bytes(c10::Device(c10::kCPU)), int64_t{1} << 50);
}

}  // namespace rematch
