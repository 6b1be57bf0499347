#include "learn/pack/stream_rows.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace rematch {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

std::vector<int64_t> in_order(size_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

StreamRows pack(const std::vector<int>& encoded_lens, const StreamOptions& options) {
  return pack_stream(in_order(encoded_lens.size()), encoded_lens, options);
}

// Lengths with the three shapes of real data: many short ones, a few long ones, all alike.
std::vector<int> any_lens(int packing_length) {
  const int longest = *rc::gen::inRange(1, packing_length + 1);
  return *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, longest + 1));
}

StreamOptions any_options() {
  return {
      .pack = {.buffer = *rc::gen::inRange(1, 20),
               .min_fill_ratio = *rc::gen::element(0.01, 0.5, 0.65, 1.0),
               .drop_last = *rc::gen::arbitrary<bool>(),
               .selector = *rc::gen::element(PackingSelector::kBinpacking,
                                             PackingSelector::kOptimal, PackingSelector::kFifo)},
      .packing_length = *rc::gen::inRange(1, 60)};
}

int64_t total_of(const std::vector<int64_t>& row, const std::vector<int>& encoded_lens) {
  int64_t total = 0;
  for (const int64_t sample_idx : row) total += encoded_lens[static_cast<size_t>(sample_idx)];
  return total;
}

}  // namespace

TEST(PackStream, RefillsTheBufferAfterEachRow) {
  // fifo, rows of 10, three samples wait: {6, 5, 4} gives 6+4; then {5, 3, 7} gives 5+3; then {7,
  // 2} gives both.
  const StreamRows packed =
      pack({6, 5, 4, 3, 7, 2},
           {.pack = {.buffer = 3, .selector = PackingSelector::kFifo}, .packing_length = 10});
  EXPECT_EQ(packed.rows, (Rows{{0, 2}, {1, 3}, {4, 5}}));
  EXPECT_EQ(packed.num_dropped_samples, 0);
}

TEST(PackStream, FollowsTheOrderOfTheEpoch) {
  const std::vector<int64_t> order{2, 0, 3, 1};
  const StreamRows packed =
      pack_stream(order, std::vector<int>{4, 9, 5, 1},
                  {.pack = {.selector = PackingSelector::kFifo}, .packing_length = 10});
  EXPECT_EQ(packed.rows, (Rows{{2, 0, 3}, {1}}));
}

TEST(PackStream, ABufferOfOneTrainsEachSampleAlone) {
  EXPECT_EQ(pack({1, 1, 1}, {.pack = {.buffer = 1, .drop_last = false}, .packing_length = 10}).rows,
            (Rows{{0}, {1}, {2}}));
}

TEST(PackStream, DropsAnUnderfilledLastRowAndCountsItsSamples) {
  const StreamOptions options{
      .pack = {.min_fill_ratio = 0.65, .drop_last = true, .selector = PackingSelector::kFifo},
      .packing_length = 10};
  const StreamRows packed = pack({9, 8, 2, 4}, options);  // 9, 8+2, and 4 at the end
  EXPECT_EQ(packed.rows, (Rows{{0}, {1, 2}}));
  EXPECT_EQ(packed.num_dropped_samples, 1);
}

TEST(PackStream, KeepsALastRowThatIsFullEnough) {
  const StreamOptions options{
      .pack = {.min_fill_ratio = 0.4, .drop_last = true, .selector = PackingSelector::kFifo},
      .packing_length = 10};
  EXPECT_EQ(pack({9, 8, 2, 4}, options).rows, (Rows{{0}, {1, 2}, {3}}));
}

TEST(PackStream, FlushesTheLastRowWithoutDropLast) {
  const StreamOptions options{
      .pack = {.min_fill_ratio = 1.0, .drop_last = false, .selector = PackingSelector::kFifo},
      .packing_length = 10};
  const StreamRows packed = pack({9, 8, 2, 4}, options);
  EXPECT_EQ(packed.rows, (Rows{{0}, {1, 2}, {3}}));
  EXPECT_EQ(packed.num_dropped_samples, 0);
}

TEST(PackStream, DropsNoRowButTheLast) {
  // The first row holds 6 of 10 only; it is underfilled and trained all the same.
  EXPECT_EQ(pack({6, 5, 5}, {.pack = {.min_fill_ratio = 0.65}, .packing_length = 10}).rows,
            (Rows{{0}, {1, 2}}));
}

TEST(PackStream, KeepsTheOnlyRowOfAnEpoch) {
  const StreamRows packed =
      pack({1, 2}, {.pack = {.min_fill_ratio = 0.65, .drop_last = true}, .packing_length = 100});
  EXPECT_EQ(packed.rows, (Rows{{0, 1}}));
  EXPECT_EQ(packed.num_dropped_samples, 0);
}

TEST(PackStream, AnEpochOfNothingHasNoRow) {
  EXPECT_TRUE(pack({}, {.packing_length = 10}).rows.empty());
}

TEST(PackStream, TakesASampleOfTheFullLength) {
  EXPECT_EQ(pack({10, 3, 10}, {.pack = {.drop_last = false}, .packing_length = 10}).rows.size(),
            3u);
}

TEST(PackStream, RefusesInvalidOptionsAndIndices) {
  EXPECT_THROW(pack({1}, {.packing_length = 0}), InternalError);
  EXPECT_THROW(pack({1}, {.pack = {.buffer = 0}, .packing_length = 10}), InternalError);
  EXPECT_THROW(pack({11}, {.packing_length = 10}), InternalError);
  EXPECT_THROW(pack_stream(std::vector<int64_t>{1}, std::vector<int>{5}, {.packing_length = 10}),
               InternalError);
}

RC_GTEST_PROP(PackStream, TrainsEverySampleOnceOrCountsItAsDropped, ()) {
  const StreamOptions options = any_options();
  const std::vector<int> encoded_lens = any_lens(options.packing_length);
  const std::vector<int64_t> order = random_permutation(*rc::gen::arbitrary<uint64_t>(),
                                                        static_cast<int64_t>(encoded_lens.size()));
  const StreamRows packed = pack_stream(order, encoded_lens, options);
  std::vector<int64_t> seen;
  for (const auto& row : packed.rows) seen.insert(seen.end(), row.begin(), row.end());
  RC_ASSERT(seen.size() + static_cast<size_t>(packed.num_dropped_samples) == order.size());
  std::sort(seen.begin(), seen.end());
  RC_ASSERT(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  if (!options.pack.drop_last) RC_ASSERT(packed.num_dropped_samples == 0);
  RC_ASSERT(packed.rows.empty() == order.empty());
}

RC_GTEST_PROP(PackStream, RowsRespectLengthLimitAndStreamOrderAndIncludeTheOldest, ()) {
  const StreamOptions options = any_options();
  const std::vector<int> encoded_lens = any_lens(options.packing_length);
  const StreamRows packed = pack(encoded_lens, options);
  int64_t oldest = 0;
  std::vector<bool> trained(encoded_lens.size(), false);
  for (const auto& row : packed.rows) {
    RC_ASSERT(!row.empty());
    RC_ASSERT(total_of(row, encoded_lens) <= options.packing_length);
    RC_ASSERT(std::is_sorted(row.begin(), row.end()));
    RC_ASSERT(row.front() == oldest);
    for (const int64_t sample_idx : row) trained[static_cast<size_t>(sample_idx)] = true;
    while (static_cast<size_t>(oldest) < trained.size() && trained[static_cast<size_t>(oldest)])
      ++oldest;
  }
}

RC_GTEST_PROP(PackStream, SelectsOnlyFromTheBuffer, ()) {
  const StreamOptions options = any_options();
  const std::vector<int> encoded_lens = any_lens(options.packing_length);
  int64_t num_trained = 0;
  for (const auto& row : pack(encoded_lens, options).rows) {
    RC_ASSERT(row.back() < num_trained + options.pack.buffer);
    num_trained += static_cast<int64_t>(row.size());
  }
}

RC_GTEST_PROP(PackStream, IsDeterministic, ()) {
  const StreamOptions options = any_options();
  const std::vector<int> encoded_lens = any_lens(options.packing_length);
  const StreamRows first = pack(encoded_lens, options), second = pack(encoded_lens, options);
  RC_ASSERT(first.rows == second.rows);
  RC_ASSERT(first.num_dropped_samples == second.num_dropped_samples);
}

RC_GTEST_PROP(PackStream, ADroppedRowIsUnderfilledAndFlushingOnlyAddsIt, ()) {
  StreamOptions options = any_options();
  const std::vector<int> encoded_lens = any_lens(options.packing_length);
  options.pack.drop_last = true;
  const StreamRows dropped = pack(encoded_lens, options);
  options.pack.drop_last = false;
  const StreamRows flushed = pack(encoded_lens, options);
  if (dropped.num_dropped_samples == 0) {
    RC_ASSERT(dropped.rows == flushed.rows);
    return;
  }
  RC_ASSERT(dropped.rows.size() + 1 == flushed.rows.size());
  RC_ASSERT(std::equal(dropped.rows.begin(), dropped.rows.end(), flushed.rows.begin()));
  RC_ASSERT(static_cast<int64_t>(flushed.rows.back().size()) == dropped.num_dropped_samples);
}

}  // namespace rematch
