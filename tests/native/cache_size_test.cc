#include "rollout/native/cache_size.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace rematch {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

int64_t blocks(const std::vector<int64_t>& prompt_lens, int64_t max_new_tokens,
               const NativeSettings& options, int64_t free_bytes = 100 * kGib,
               int64_t block_bytes = 1024) {
  return num_cache_blocks({prompt_lens, max_new_tokens, block_bytes}, options, free_bytes);
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

TEST(CacheSize, KnowsHowMuchMemoryIsFree) {
  EXPECT_GT(free_memory_bytes(c10::Device(c10::kCPU)), 1 << 20);
  EXPECT_LT(free_memory_bytes(c10::Device(c10::kCPU)), int64_t{1} << 50);
}

}  // namespace rematch
