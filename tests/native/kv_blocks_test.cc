#include "engine/rollout/native/kv_blocks.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <set>

#include "base/error.h"

namespace rematch {
namespace {

ContentKey key(uint64_t number) { return {number, ~number}; }

KvBlocks four_blocks() { return KvBlocks({.num_blocks = 4, .block_len = 2}); }

ContentKey key_of(const std::vector<int32_t>& ids, const std::vector<ImageSpan>& images = {},
                  const ContentKey& parent = {}) {
  return chain_key(parent, ids, 10, images);
}

}  // namespace

TEST(ChainKey, DependsOnTokensTheirNumberAndTheParent) {
  const std::vector<ContentKey> keys{key_of({1, 2}),
                                     key_of({2, 1}),
                                     key_of({1}),
                                     key_of({1, 2, 0}),
                                     key_of({1, 2}, {}, key(1)),
                                     key_of({1, 2}, {}, {0, 1})};
  EXPECT_EQ(std::set<ContentKey>(keys.begin(), keys.end()).size(), keys.size());
  EXPECT_EQ(key_of({1, 2}), key_of({1, 2}));
}

TEST(ChainKey, TellsImagesApartByContentAndPlace) {
  const std::vector<int32_t> pads{7, 7, 7};
  const auto with = [&](int64_t first, int64_t num, uint64_t content) {
    return key_of(pads, {{first, num, key(content)}});
  };
  const std::vector<ContentKey> keys{key_of(pads), with(10, 3, 1), with(10, 3, 2), with(11, 2, 1),
                                     with(10, 2, 1)};
  EXPECT_EQ(std::set<ContentKey>(keys.begin(), keys.end()).size(), keys.size());
  // An image elsewhere is none of this block's business; one that continues beyond it is.
  EXPECT_EQ(with(13, 5, 1), key_of(pads));
  EXPECT_EQ(with(2, 8, 1), key_of(pads));
  EXPECT_EQ(with(2, 20, 1), with(10, 3, 1));
}

TEST(KvBlocks, GivesEachBlockToOneHolderUntilNoneIsLeft) {
  KvBlocks blocks = four_blocks();
  std::set<int32_t> given;
  for (int i = 0; i < 4; ++i) given.insert(blocks.allocate());
  EXPECT_EQ(given, (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(blocks.num_available(), 0);
  EXPECT_THROW(blocks.allocate(), InternalError);
  blocks.release(2);
  EXPECT_EQ(blocks.allocate(), 2);
}

TEST(KvBlocks, FindsContentWhileUsedAndWhileKept) {
  KvBlocks blocks = four_blocks();
  const int32_t block = blocks.allocate();
  blocks.publish(block, key(1));
  EXPECT_EQ(blocks.acquire(key(1)), block);
  EXPECT_EQ(blocks.num_holders(block), 2);
  EXPECT_EQ(blocks.num_available(), 3);
  blocks.release(block);
  blocks.release(block);
  EXPECT_EQ(blocks.num_available(), blocks.num_blocks());
  EXPECT_EQ(blocks.num_kept(), 1);
  EXPECT_EQ(blocks.acquire(key(1)), block);
  EXPECT_EQ(blocks.num_available(), 3);
  EXPECT_EQ(blocks.acquire(key(2)), std::nullopt);
}

TEST(KvBlocks, ABlockMayBeKnownByItsStartAndByAllOfIt) {
  KvBlocks blocks = four_blocks();
  const int32_t block = blocks.allocate();
  blocks.publish(block, key(1));
  blocks.publish(block, key(2));
  EXPECT_EQ(blocks.acquire(key(1)), block);
  EXPECT_EQ(blocks.acquire(key(2)), block);
  for (int i = 0; i < 3; ++i) blocks.release(block);
  for (int i = 0; i < 4; ++i) blocks.allocate();
  EXPECT_EQ(blocks.acquire(key(1)), std::nullopt);
  EXPECT_EQ(blocks.acquire(key(2)), std::nullopt);
}

TEST(KvBlocks, TheFirstToPublishContentStaysTheOneThatIsFound) {
  KvBlocks blocks = four_blocks();
  const int32_t first = blocks.allocate(), second = blocks.allocate();
  blocks.publish(first, key(1));
  blocks.publish(second, key(1));
  EXPECT_EQ(blocks.acquire(key(1)), first);
  blocks.release(second);
  EXPECT_EQ(blocks.num_kept(), 0) << "it could not be found there";
}

TEST(KvBlocks, OverwritesWhatWasReleasedLongestAgo) {
  KvBlocks blocks = four_blocks();
  std::vector<int32_t> held;
  for (uint64_t i = 0; i < 4; ++i) {
    held.push_back(blocks.allocate());
    blocks.publish(held.back(), key(i));
  }
  for (const int32_t block : {2, 0, 3, 1}) blocks.release(block);
  EXPECT_EQ(blocks.acquire(key(2)), 2);  // wanted again: now the youngest
  blocks.release(2);
  EXPECT_EQ(blocks.allocate(), 0);
  EXPECT_EQ(blocks.acquire(key(0)), std::nullopt);
  EXPECT_EQ(blocks.allocate(), 3);
  EXPECT_EQ(blocks.allocate(), 1);
  EXPECT_EQ(blocks.allocate(), 2);
}

TEST(KvBlocks, TouchesNewMemoryOnlyWhileLessIsKeptThanUsed) {
  KvBlocks blocks({.num_blocks = 1000, .block_len = 2});
  for (uint64_t i = 0; i < 500; ++i) {
    const int32_t block = blocks.allocate();
    EXPECT_LT(block, 2);
    blocks.publish(block, key(i));
    blocks.release(block);
  }
}

TEST(KvBlocks, KeepsNothingWithoutPrefixCache) {
  KvBlocks blocks({.num_blocks = 2, .block_len = 2, .prefix_cache = false});
  const int32_t block = blocks.allocate();
  blocks.publish(block, key(1));
  EXPECT_EQ(blocks.acquire(key(1)), std::nullopt);
  blocks.release(block);
  EXPECT_EQ(blocks.num_kept(), 0);
}

TEST(KvBlocks, ChecksWhatOnlyABugCanAskFor) {
  KvBlocks blocks = four_blocks();
  EXPECT_THROW(blocks.release(0), InternalError) << "never allocated";
  EXPECT_THROW(blocks.release(-1), InternalError);
  const int32_t block = blocks.allocate();
  blocks.release(block);
  EXPECT_THROW(blocks.release(block), InternalError);
  EXPECT_THROW(blocks.publish(block, key(1)), InternalError);
  EXPECT_THROW(KvBlocks({.num_blocks = 1, .block_len = 0}), InternalError);
  EXPECT_THROW(KvBlocks({.num_blocks = 0}).allocate(), InternalError);
}

TEST(KvBlocks, CountsBlocksOfAnyNumberOfTokens) {
  const KvBlocks blocks = four_blocks();
  EXPECT_EQ(blocks.blocks_for(0), 0);
  EXPECT_EQ(blocks.blocks_for(1), 1);
  EXPECT_EQ(blocks.blocks_for(2), 1);
  EXPECT_EQ(blocks.blocks_for(3), 2);
  EXPECT_EQ(blocks.blocks_for(INT64_MAX), INT64_MAX / 2 + 1);
}

// Any order of calls: every block is used, kept or empty, once; content is found where it was put
// or not at all.
RC_GTEST_PROP(KvBlocks, NeverLosesABlock, ()) {
  const int64_t num_blocks = *rc::gen::inRange<int64_t>(1, 12);
  KvBlocks blocks({.num_blocks = num_blocks, .block_len = 4});
  std::vector<int32_t> held;
  int64_t num_touched = 0;
  std::map<uint64_t, int32_t> published;
  for (const int action : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
    const auto content = static_cast<uint64_t>(action / 10 % 7);
    switch (action % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
        if (blocks.num_available() > 0) {
          held.push_back(blocks.allocate());
          num_touched = std::max<int64_t>(num_touched, held.back() + 1);
        }
        break;
      case 4:
      case 5:
        if (!held.empty()) {
          if (!blocks.acquire(key(content))) {
            published[content] = held.back();
          } else {
            held.push_back(published.at(content));
          }
          blocks.publish(held.back(), key(content));
        }
        break;
      default:
        if (!held.empty()) {
          blocks.release(held.front());
          held.erase(held.begin());
        }
    }
    const std::set<int32_t> used(held.begin(), held.end());
    RC_ASSERT(blocks.num_available() + std::ssize(used) == num_blocks);
    RC_ASSERT(blocks.num_kept() + std::ssize(used) <= num_touched);
    for (const int32_t block : used)
      RC_ASSERT(blocks.num_holders(block) == std::count(held.begin(), held.end(), block));
  }
  for (const int32_t block : held) blocks.release(block);
  for (int64_t i = 0; i < num_blocks; ++i) blocks.allocate();
  RC_ASSERT(blocks.num_available() == 0);
}

}  // namespace rematch
