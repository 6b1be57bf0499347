#include "learn/pack/select.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "base/error.h"
#include "base/random.h"
#include "learn/pack/select_rules.h"
#include "support/capture.h"

namespace rematch {

void PrintTo(const Selection& selection, std::ostream* out) {
  *out << "total " << selection.total << " of";
  for (const int i : selection.indices) *out << ' ' << i;
}

namespace {

constexpr PackingSelector kAll[] = {PackingSelector::kBinpacking, PackingSelector::kOptimal,
                                    PackingSelector::kFifo};

struct Buffer {
  std::vector<int> encoded_lens;
  int packing_length = 0;
};

std::ostream& operator<<(std::ostream& out, const Buffer& buffer) {
  out << "rows of " << buffer.packing_length << ", lengths";
  for (const int len : buffer.encoded_lens) out << ' ' << len;
  return out;
}

Selection select(PackingSelector selector, const Buffer& buffer) {
  return select_segments(selector, buffer.encoded_lens, buffer.packing_length);
}

// Every subset with the oldest, judged by the words of the rule: largest total, then fewest, then
// lexicographically smallest.
Selection by_brute_force(const Buffer& buffer) {
  const size_t n = buffer.encoded_lens.size();
  Selection best;
  for (uint32_t set = 1; set < 1u << n; set += 2) {
    Selection next;
    for (size_t i = 0; i < n; ++i) {
      if ((set >> i & 1) == 0) continue;
      next.indices.push_back(static_cast<int>(i));
      next.total += buffer.encoded_lens[i];
    }
    if (next.total > buffer.packing_length || next.total < best.total) continue;
    const bool is_better =
        next.total > best.total || next.indices.size() < best.indices.size() ||
        (next.indices.size() == best.indices.size() && next.indices < best.indices);
    if (is_better) best = std::move(next);
  }
  return best;
}

void expect_optimal(const Buffer& buffer) {
  EXPECT_EQ(select(PackingSelector::kOptimal, buffer), by_brute_force(buffer)) << buffer;
}

// Uniform lengths low..high; depends on `seed` only.
Buffer random_buffer(uint64_t seed, size_t count, int low, int high, int packing_length) {
  Buffer buffer{.packing_length = packing_length};
  for (size_t i = 0; i < count; ++i) {
    buffer.encoded_lens.push_back(
        low + static_cast<int>(random_below(seed, i, static_cast<uint64_t>(high - low + 1))));
  }
  return buffer;
}

// A buffer of any size up to max_count, lengths from tiny to the whole row; rapidcheck shrinks it
// to few and short segments.
rc::Gen<Buffer> buffers(int max_count) {
  return rc::gen::mapcat(rc::gen::inRange(1, 400), [=](int packing_length) {
    const auto fraction =
        rc::gen::element(packing_length, (packing_length + 1) / 2, (packing_length + 2) / 3);
    const auto any = rc::gen::oneOf(rc::gen::inRange(1, packing_length + 1),
                                    rc::gen::inRange(1, std::min(packing_length, 9) + 1), fraction);
    // lengths of full size from the first case on
    const auto len = rc::gen::resize(rc::kNominalSize, any);
    const auto lens =
        rc::gen::resize(max_count, rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(len)));
    return rc::gen::map(
        lens, [=](const std::vector<int>& found) { return Buffer{found, packing_length}; });
  });
}

}  // namespace

// spec: select-14 select-22
TEST(PackingSelectorName, IsKnownOrRefusedWithTheAlternatives) {
  EXPECT_EQ(packing_selector("binpacking"), PackingSelector::kBinpacking);
  EXPECT_EQ(packing_selector("optimal"), PackingSelector::kOptimal);
  EXPECT_EQ(packing_selector("fifo"), PackingSelector::kFifo);
  for (const std::string name : {"", "Optimal", "best-fit"}) {
    const UserError error = test::catch_user_error([&] { packing_selector(name); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    for (const char* mention : {"binpacking", "optimal", "fifo", "training.packing: false"}) {
      EXPECT_NE(error.problems()[0].fix.find(mention), std::string::npos) << error.what();
    }
  }
}

TEST(SelectFifo, TakesTheOldestThenEveryLaterOneThatStillFits) {
  EXPECT_EQ(select(PackingSelector::kFifo, {{4, 7, 5, 2, 1}, 10}), (Selection{{0, 2, 4}, 10}));
  EXPECT_EQ(select(PackingSelector::kFifo, {{10, 1}, 10}), (Selection{{0}, 10}));
}

// spec: select-08
TEST(SelectBinpacking, TakesABinOnlyWhenItHoldsMoreThanFifo) {
  // fifo: 7
  EXPECT_EQ(select(PackingSelector::kBinpacking, {{1, 6, 5, 4}, 10}), (Selection{{0, 2, 3}, 10}));
  // the bin {9} is as full
  EXPECT_EQ(select(PackingSelector::kBinpacking, {{1, 3, 6, 9}, 10}), (Selection{{0, 1, 2}, 10}));
}

// spec: select-11
TEST(SelectBinpacking, TakesTheBinOfFewestThenOfSmallestIndices) {
  // Next to 1: the bins {6}, {5}, {4} are filled to {6, 3} and {5, 4}, both 9; fifo reaches 8.
  EXPECT_EQ(select(PackingSelector::kBinpacking, {{1, 2, 5, 4, 6, 3}, 10}),
            (Selection{{0, 2, 3}, 10}));
  // {9} has fewer than {5, 4}; fifo starts with the 2 and makes 8.
  EXPECT_EQ(select(PackingSelector::kBinpacking, {{1, 2, 5, 4, 9}, 10}), (Selection{{0, 4}, 10}));
}

// spec: select-11
TEST(SelectOptimal, PrefersTheFullestThenTheFewestThenTheSmallestIndices) {
  // fifo and one bin make 8
  EXPECT_EQ(select(PackingSelector::kOptimal, {{2, 6, 5, 3, 4}, 10}), (Selection{{0, 2, 3}, 10}));
  // not {4, 4}
  EXPECT_EQ(select(PackingSelector::kOptimal, {{2, 4, 4, 8}, 10}), (Selection{{0, 3}, 10}));
  // not {1, 7}
  EXPECT_EQ(select(PackingSelector::kOptimal, {{2, 5, 1, 4, 7, 3}, 10}),
            (Selection{{0, 1, 5}, 10}));
}

TEST(SelectOptimal, EqualsBruteForceOnRandomSetsUpToFourteen) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const size_t count = 1 + seed % 14;
    const int cap = 1 + static_cast<int>(random_below(seed, 1000,
                                                      seed % 3 == 0   ? 12
                                                      : seed % 3 == 1 ? 100
                                                                      : 3000));
    expect_optimal(random_buffer(seed, count, 1, cap, cap));
    expect_optimal(random_buffer(seed, count, 1, std::max(1, cap / 4), cap));
    expect_optimal(random_buffer(seed, count, std::max(1, cap / 5), std::max(1, cap / 3), cap));
  }
}

TEST(SelectOptimal, EqualsBruteForceOnAdversarialSets) {
  for (int n = 1; n <= 14; ++n) {
    std::vector<int> powers(n), evens(n), ramp(n);
    for (int i = 0; i < n; ++i) powers[i] = 1 << i, evens[i] = 2 * (i % 5 + 1), ramp[i] = i + 1;
    const std::vector<int> down(ramp.rbegin(), ramp.rend());
    for (int cap = 1 << (n - 1); cap < 1 << n; cap += 1 + (1 << n) / 23)
      expect_optimal({powers, cap});
    std::reverse(powers.begin(), powers.end());
    for (int cap = 1 << (n - 1); cap < 1 << n; cap += 1 + (1 << n) / 23)
      expect_optimal({powers, cap});
    // equal lengths
    for (int cap = 7; cap <= 7 * n + 7; cap += 3) expect_optimal({std::vector<int>(n, 7), cap});
    // odd caps cannot be met
    for (int cap = 10; cap < 45; cap += 5) expect_optimal({evens, cap});
    for (int cap = n; cap < 60; cap += 3) expect_optimal({ramp, cap}), expect_optimal({down, cap});
    // near the cap
    for (int near = 0; near < 3; ++near) expect_optimal({std::vector<int>(n, 50 - near), 50});
    std::vector<int> no_room(n, 1);
    no_room[0] = 64;
    for (int cap = 64; cap < 67; ++cap) expect_optimal({no_room, cap});  // residual 0, 1, 2
  }
}

TEST(SelectOptimal, CountsMoreSegmentsThanAByteOrTwoHold) {
  // One segment more than fits; the type of the counts changes at 255 and at 65 535 segments in
  // addition to the oldest.
  for (const int cap : {254, 255, 256, 257, 65536}) {
    Buffer buffer{std::vector<int>(cap, 1), cap};
    buffer.encoded_lens.push_back(1);
    const Selection selection = select(PackingSelector::kOptimal, buffer);
    EXPECT_EQ(selection.total, cap);
    ASSERT_EQ(static_cast<int>(selection.indices.size()), cap);
    EXPECT_EQ(selection.indices.back(), cap - 1);
  }
}

TEST(SelectOptimal, AnswersWhenNoRowCanBeFull) {
  Buffer buffer = random_buffer(7, 300, 8, 300, 4001);
  for (int& len : buffer.encoded_lens) len *= 2;
  const Selection selection = select(PackingSelector::kOptimal, buffer);
  EXPECT_EQ(selection.total, 4000);
}

TEST(SelectOptimal, RefusesWhatWouldNeedMoreThanAGiB) {
  Buffer buffer{std::vector<int>(200, 999'999'998), 2'000'000'001};
  const UserError error =
      test::catch_user_error([&] { select(PackingSelector::kOptimal, buffer); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].fix.find("binpacking"), std::string::npos);
}

TEST(SelectSegments, NothingWaitingGivesAnEmptySelection) {
  for (const PackingSelector selector : kAll) EXPECT_EQ(select(selector, {{}, 10}), Selection{});
}

TEST(SelectSegments, ALengthOutOfRangeIsABugOfTheCaller) {
  for (const PackingSelector selector : kAll) {
    EXPECT_THROW(select(selector, {{3, 11}, 10}), InternalError);
    EXPECT_THROW(select(selector, {{3, 0}, 10}), InternalError);
    EXPECT_THROW(select(selector, {{}, 0}), InternalError);
  }
}

TEST(SelectSegments, LengthsUpToTheLargestIntegerDoNotOverflow) {
  const int most = std::numeric_limits<int>::max();
  for (const PackingSelector selector : kAll) {
    EXPECT_EQ(select(selector, {{most, most, most, 1}, most}), (Selection{{0}, most}));
    EXPECT_EQ(select(selector, {{1, 2, 3}, most}), (Selection{{0, 1, 2}, 6}));
  }
  EXPECT_EQ(select(PackingSelector::kBinpacking, {{1, most - 2, most - 1, most}, most}),
            (Selection{{0, 2}, most}));
}

// spec: select-05 select-07 select-09 select-10 select-12 select-19 select-20
RC_GTEST_PROP(SelectSegments, IncludesTheOldestAscendsFitsAndIsNeverBelowFifo, ()) {
  const Buffer buffer = *buffers(80);
  const int64_t fifo = select(PackingSelector::kFifo, buffer).total;
  const int64_t optimal = select(PackingSelector::kOptimal, buffer).total;
  for (const PackingSelector selector : kAll) {
    const Selection selection = select(selector, buffer);
    RC_ASSERT(selection.indices.front() == 0);
    RC_ASSERT(std::adjacent_find(selection.indices.begin(), selection.indices.end(),
                                 std::greater_equal<>()) == selection.indices.end());
    RC_ASSERT(selection.indices.back() < static_cast<int>(buffer.encoded_lens.size()));
    int64_t total = 0;
    for (const int i : selection.indices) total += buffer.encoded_lens[i];
    RC_ASSERT(selection.total == total);
    RC_ASSERT(total <= buffer.packing_length);
    RC_ASSERT(total >= fifo);
    RC_ASSERT(total <= optimal);
    RC_ASSERT(select(selector, buffer) == selection);
  }
}

RC_GTEST_PROP(SelectOptimal, EqualsBruteForceOnAnySmallSet, ()) {
  const Buffer buffer = *buffers(11);
  RC_ASSERT(select(PackingSelector::kOptimal, buffer) == by_brute_force(buffer));
}

RC_GTEST_PROP(SelectOptimal, TotalDoesNotDependOnTheOrderOfTheRest, ()) {
  const Buffer buffer = *buffers(60);
  Buffer shuffled = buffer;
  const auto order =
      random_permutation(*rc::gen::arbitrary<uint64_t>(), std::ssize(buffer.encoded_lens) - 1);
  for (size_t i = 0; i < order.size(); ++i)
    shuffled.encoded_lens[i + 1] = buffer.encoded_lens[static_cast<size_t>(order[i]) + 1];
  const Selection a = select(PackingSelector::kOptimal, buffer),
                  b = select(PackingSelector::kOptimal, shuffled);
  RC_ASSERT(a.total == b.total);
  RC_ASSERT(a.indices.size() == b.indices.size());
}

TEST(LongestFirst, IsStableAndLeavesOutTheOldestAndWhatIsTooLong) {
  EXPECT_EQ(longest_first(std::vector<int>{9, 3, 70'000, 3, 256, 255, 65'536, 90'000}, 70'000),
            (std::vector<int>{2, 6, 4, 5, 1, 3}));
  EXPECT_TRUE(longest_first(std::vector<int>{5}, 10).empty());
}

}  // namespace rematch
