// The requirement on post-rollout packing selection: its sentences and scenarios, on the selector
// that the trainer calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "pack/select.h"
#include "support/capture.h"

namespace rematch {
namespace {

using testing::HasSubstr;

constexpr PackingSelector kAll[] = {PackingSelector::kBinpacking, PackingSelector::kOptimal,
                                    PackingSelector::kFifo};

/// A buffer of up to 40 short segments under a cap of 1000.
std::vector<int> random_buffer(uint64_t number) {
  const uint64_t key = random_key({number});
  std::vector<int> lens(1 + random_below(key, 0, 40));
  for (size_t i = 0; i < lens.size(); ++i)
    lens[i] = 1 + static_cast<int>(random_below(key, 1 + i, 600));
  return lens;
}

int64_t fifo_total(const std::vector<int>& lens, int cap) {
  int64_t total = 0;
  for (const int len : lens) {
    if (total + len <= cap) total += len;
  }
  return total;
}

}  // namespace

// spec: select-01 select-05 select-07 select-09 select-19
TEST(SelectionSpec, MultipleShortSegmentsPackEfficientlyUnderTheSameCap) {
  for (uint64_t number = 0; number < 500; ++number) {
    const std::vector<int> lens = random_buffer(number);
    for (const PackingSelector selector : kAll) {
      const Selection selection = select_segments(selector, lens, 1000);
      int64_t total = 0;
      for (const int i : selection.indices) total += lens.at(static_cast<size_t>(i));
      EXPECT_EQ(selection.total, total);
      EXPECT_LE(total, 1000);
      ASSERT_FALSE(selection.indices.empty());
      EXPECT_EQ(selection.indices[0], 0) << "the oldest";
      EXPECT_GE(total, fifo_total(lens, 1000)) << "at least the FIFO-greedy baseline";
    }
  }
}

// spec: select-08
TEST(SelectionSpec, FillsARowBetterThanFifoWhereItCan) {
  // fifo: 500 + 100 + 50 + 30; better: 500 + 450 + 50
  const std::vector<int> lens = {500, 100, 450, 50, 30};
  EXPECT_EQ(select_segments(PackingSelector::kFifo, lens, 1000).total, 680);
  const Selection better = select_segments(PackingSelector::kBinpacking, lens, 1000);
  EXPECT_EQ(better.total, 1000);
  EXPECT_EQ(better.indices, (std::vector<int>{0, 2, 3}));
}

// spec: select-10 select-20
TEST(SelectionSpec, DeterministicSelection) {
  for (uint64_t number = 0; number < 200; ++number) {
    const std::vector<int> lens = random_buffer(number);
    const std::vector<int> again = random_buffer(number);
    for (const PackingSelector selector : kAll)
      EXPECT_EQ(select_segments(selector, lens, 1000), select_segments(selector, again, 1000));
  }
}

// spec: select-11
TEST(SelectionSpec, TiesGoToFewerSegmentsThenToTheSmallestIndices) {
  // Totals of 900 by {0, 1, 2} and by {0, 3}: the pair has fewer segments.
  EXPECT_EQ(
      select_segments(PackingSelector::kOptimal, std::vector<int>{500, 150, 250, 400}, 900).indices,
      (std::vector<int>{0, 3}));
  // Equal lengths: the earliest.
  EXPECT_EQ(
      select_segments(PackingSelector::kOptimal, std::vector<int>{500, 400, 400, 400}, 900).indices,
      (std::vector<int>{0, 1}));
  // A candidate that only equals fifo's total does not replace it.
  EXPECT_EQ(select_segments(PackingSelector::kBinpacking, std::vector<int>{500, 150, 250, 400}, 900)
                .indices,
            (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(select_segments(PackingSelector::kBinpacking, std::vector<int>{500, 400, 400, 400}, 900)
                .indices,
            (std::vector<int>{0, 1}));
}

// spec: select-12
TEST(SelectionSpec, TheSubsetKeepsInsertionOrder) {
  for (uint64_t number = 0; number < 200; ++number) {
    const std::vector<int> lens = random_buffer(number);
    for (const PackingSelector selector : kAll) {
      const std::vector<int> indices = select_segments(selector, lens, 1000).indices;
      EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
    }
  }
}

// spec: select-14 select-22
TEST(SelectionSpec, MissingBinpackingDependencyFailsFast) {
  // The rule is built in: what can be missing is a selector that this build does not have.
  const UserError error = test::catch_user_error([] { packing_selector("karmarkar_karp"); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  const std::string text = error.what() + error.problems()[0].what + error.problems()[0].fix;
  for (const char* part : {"binpacking", "optimal", "fifo", "training.packing: false"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace rematch
