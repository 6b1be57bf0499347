#include "learn/data/windows.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

// All plans of one epoch.
std::vector<WindowPlan> one_epoch(WindowStream& stream) {
  std::vector<WindowPlan> plans;
  do {
    plans.push_back(stream.next());
  } while (!plans.back().last_of_epoch);
  return plans;
}

std::vector<int64_t> samples_of(const std::vector<WindowPlan>& plans) {
  std::vector<int64_t> samples;
  for (const WindowPlan& plan : plans) {
    for (const auto& micro_batch : plan.micro_batches)
      samples.insert(samples.end(), micro_batch.begin(), micro_batch.end());
  }
  return samples;
}

std::vector<size_t> sizes(const WindowPlan& plan) {
  std::vector<size_t> all;
  for (const auto& micro_batch : plan.micro_batches) all.push_back(micro_batch.size());
  return all;
}

// Rows of 1, 2, 3, 3 … samples whose lengths shift with the epoch, as packing makes them.
WindowOptions with_uneven_rows(WindowOptions options) {
  options.cut = [](const std::vector<int64_t>& order, int64_t epoch) {
    constexpr size_t kSizes[] = {1, 2, 3, 3, 2, 3, 1, 2};
    std::vector<std::vector<int64_t>> rows;
    size_t next = 0, turn = static_cast<size_t>(epoch) * 4;
    while (next < order.size()) {
      const size_t end = std::min(next + kSizes[turn++ % 8], order.size());
      rows.emplace_back(order.begin() + static_cast<long>(next),
                        order.begin() + static_cast<long>(end));
      next = end;
    }
    return rows;
  };
  return options;
}

WindowOptions any_options() {
  WindowOptions options;
  options.num_samples = *rc::gen::inRange(1, 60);
  options.batches.per_device_train_batch_size = *rc::gen::inRange(1, 6);
  options.batches.gradient_accumulation_steps = *rc::gen::inRange(1, 6);
  options.world_size = *rc::gen::inRange(1, 4);
  options.seed = *rc::gen::arbitrary<uint64_t>();
  return *rc::gen::arbitrary<bool>() ? with_uneven_rows(options) : options;
}

}  // namespace

TEST(WindowStream, CutsAnEpochIntoWindowsAndMarksThePartialOne) {
  WindowStream stream(
      {.num_samples = 11,
       .batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 4}});
  ASSERT_EQ(stream.windows_in_epoch(0), 2);
  const WindowPlan first = stream.next(), second = stream.next(), third = stream.next();
  EXPECT_EQ(sizes(first), (std::vector<size_t>{2, 2, 2, 2}));
  EXPECT_FALSE(first.is_partial || first.last_of_epoch);
  EXPECT_EQ(sizes(second), (std::vector<size_t>{2, 1}));
  EXPECT_TRUE(second.is_partial && second.last_of_epoch);
  EXPECT_EQ(third.epoch, 1);
  EXPECT_EQ(third.window_idx, 2);
  const std::vector<int64_t> samples = samples_of({first, second});
  EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), 11u);
}

TEST(WindowStream, ASmallerLastMicroBatchAloneDoesNotMakeAWindowPartial) {
  WindowStream stream(
      {.num_samples = 5,
       .batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 3}});
  EXPECT_FALSE(stream.next().is_partial);
}

TEST(WindowStream, DropsTheLastMicroBatchOnRequest) {
  WindowStream stream(
      {.num_samples = 5, .batches = {.per_device_train_batch_size = 2, .drop_last = true}});
  EXPECT_EQ(samples_of(one_epoch(stream)).size(), 4u);
}

TEST(WindowStream, ShufflesEachEpochAnewBySeed) {
  const auto order = [](uint64_t seed, int64_t epoch) {
    WindowStream stream({.num_samples = 40, .seed = seed});
    stream.seek({.epoch = epoch, .next_window_in_epoch = 0, .window_idx = epoch * 40});
    return samples_of(one_epoch(stream));
  };
  EXPECT_EQ(order(1, 3), order(1, 3));
  EXPECT_NE(order(1, 3), order(1, 4));
  EXPECT_NE(order(1, 3), order(2, 3));
}

TEST(WindowStream, BatchSizesCutTheSameOrder) {
  WindowStream fine(
      {.num_samples = 30,
       .batches = {.per_device_train_batch_size = 1, .gradient_accumulation_steps = 6}});
  WindowStream coarse(
      {.num_samples = 30,
       .batches = {.per_device_train_batch_size = 3, .gradient_accumulation_steps = 2}});
  EXPECT_EQ(samples_of({fine.next()}), samples_of({coarse.next()}));
}

RC_GTEST_PROP(WindowStream, RanksTogetherSeeEverySampleOncePerEpoch, ()) {
  WindowOptions options = any_options();
  std::vector<int64_t> seen;
  std::vector<std::vector<WindowPlan>> plans;
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    WindowStream stream(options);
    plans.push_back(one_epoch(stream));
    const std::vector<int64_t> samples = samples_of(plans.back());
    seen.insert(seen.end(), samples.begin(), samples.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(static_cast<size_t>(options.num_samples));
  std::iota(all.begin(), all.end(), 0);
  RC_ASSERT(seen == all);
  for (const auto& of_rank : plans) {
    RC_ASSERT(of_rank.size() == plans[0].size());
    for (size_t i = 0; i < of_rank.size(); ++i)
      RC_ASSERT(of_rank[i].is_partial == plans[0][i].is_partial);
  }
}

RC_GTEST_PROP(WindowStream, RanksTakeTheMicroBatchesOfOneRankInTurn, ()) {
  WindowOptions options = any_options();
  WindowOptions alone = options;
  alone.batches.gradient_accumulation_steps *= options.world_size;
  alone.world_size = 1;
  WindowStream single(alone);
  const std::vector<WindowPlan> expected = one_epoch(single);
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    WindowStream stream(options);
    for (const WindowPlan& whole : expected) {
      const WindowPlan plan = stream.next();
      std::vector<std::vector<int64_t>> mine;
      for (size_t i = static_cast<size_t>(options.rank); i < whole.micro_batches.size();
           i += static_cast<size_t>(options.world_size)) {
        mine.push_back(whole.micro_batches[i]);
      }
      RC_ASSERT(plan.micro_batches == mine);
      RC_ASSERT(plan.window_idx == whole.window_idx);
    }
  }
}

RC_GTEST_PROP(WindowStream, ContinuesFromASavedCursor, ()) {
  const WindowOptions options = any_options();
  WindowStream stream(options);
  const int num_before = *rc::gen::inRange(0, 100);
  for (int i = 0; i < num_before; ++i) stream.next();
  WindowStream resumed(options);
  resumed.seek(stream.cursor());
  for (int i = 0; i < 5; ++i) {
    const WindowPlan a = stream.next(), b = resumed.next();
    RC_ASSERT(a.window_idx == num_before + i);
    RC_ASSERT(a.window_idx == b.window_idx);
    RC_ASSERT(a.epoch == b.epoch);
    RC_ASSERT(a.micro_batches == b.micro_batches);
  }
  RC_ASSERT(stream.cursor() == resumed.cursor());
}

TEST(WindowStream, ACutOfItsOwnMakesEpochsOfDifferentLength) {
  WindowStream stream(
      with_uneven_rows({.num_samples = 9, .batches = {.per_device_train_batch_size = 2}}));
  // Epoch 0 has rows of 1, 2, 3 and 3 samples, two of them in a window; epoch 1 of 2, 3, 1, 2
  // and 1.
  EXPECT_EQ(stream.windows_in_epoch(1), 3);
  EXPECT_EQ(stream.windows_in_epoch(0), 2);
  EXPECT_EQ(sizes(stream.next()), (std::vector<size_t>{1, 2}));
  const WindowPlan last = stream.next();
  EXPECT_EQ(sizes(last), (std::vector<size_t>{3, 3}));
  EXPECT_TRUE(last.last_of_epoch);
  EXPECT_FALSE(last.is_partial);
  const std::vector<WindowPlan> epoch_1 = one_epoch(stream);
  ASSERT_EQ(epoch_1.size(), 3u);
  EXPECT_EQ(epoch_1[0].window_idx, 2);
  EXPECT_EQ(sizes(epoch_1[2]), (std::vector<size_t>{1}));
  EXPECT_TRUE(epoch_1[2].is_partial);
  EXPECT_EQ(stream.cursor(), (WindowCursor{2, 0, 5}));
}

TEST(WindowStream, ACutDrawsNoEpochThatIsNotAskedFor) {
  std::vector<int64_t> drawn;
  WindowOptions options{.num_samples = 6};
  options.cut = [&](const std::vector<int64_t>& order, int64_t epoch) {
    drawn.push_back(epoch);
    return std::vector<std::vector<int64_t>>{order};
  };
  WindowStream stream(options);
  EXPECT_TRUE(drawn.empty());
  stream.next();
  stream.windows_in_epoch(1);
  stream.windows_in_epoch(0);
  stream.next();
  EXPECT_EQ(drawn, (std::vector<int64_t>{0, 1}));
  stream.windows_in_epoch(3);
  stream.next();
  EXPECT_EQ(drawn, (std::vector<int64_t>{0, 1, 3, 2}));
}

// At the end of an epoch the cursor stands in the next one, which an interrupted run must not draw
// before it has saved its state.
TEST(WindowStream, RewindingDrawsNothingAndRepeatsTheWindow) {
  std::vector<int64_t> drawn;
  WindowOptions options{.num_samples = 6};
  options.cut = [&](const std::vector<int64_t>& order, int64_t epoch) {
    drawn.push_back(epoch);
    return std::vector<std::vector<int64_t>>{order};
  };
  WindowStream stream(options);
  stream.next();
  const WindowCursor end_of_epoch = stream.cursor();
  stream.rewind(end_of_epoch);
  EXPECT_EQ(drawn, std::vector<int64_t>{0});
  const WindowPlan first = stream.next();
  stream.rewind(end_of_epoch);
  EXPECT_EQ(stream.next().micro_batches, first.micro_batches);
  EXPECT_EQ(drawn, (std::vector<int64_t>{0, 1}));
}

TEST(WindowStream, RefusesACursorOfOtherData) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  WindowStream stream({.num_samples = 10});
  for (const WindowCursor& cursor :
       {WindowCursor{0, 10, 10}, WindowCursor{-1, 0, -10}, WindowCursor{1, 0, 9},
        WindowCursor{0, -1, -1}, WindowCursor{huge, 0, huge}, WindowCursor{0, 3, huge},
        WindowCursor{huge / 2, 5, 5}}) {
    EXPECT_EQ(test::catch_user_error([&] { stream.seek(cursor); }).kind(), ErrorKind::kData);
  }
  WindowStream uneven(
      with_uneven_rows({.num_samples = 9, .batches = {.per_device_train_batch_size = 2}}));
  for (const WindowCursor& cursor :
       {WindowCursor{0, 2, 2}, WindowCursor{1, 0, 3}, WindowCursor{1, 3, 5},
        WindowCursor{huge, 0, 4}, WindowCursor{2, 0, 4}}) {
    EXPECT_EQ(test::catch_user_error([&] { uneven.seek(cursor); }).kind(), ErrorKind::kData);
  }
  uneven.seek({1, 2, 4});
  EXPECT_TRUE(uneven.next().last_of_epoch);
}

TEST(WindowStream, RefusesOptionsOutOfRange) {
  const auto refused = [](const WindowOptions& options) {
    EXPECT_EQ(test::catch_user_error([&] { WindowStream stream(options); }).kind(),
              ErrorKind::kConfig);
  };
  refused({.num_samples = 0});
  refused({.num_samples = 4, .batches = {.per_device_train_batch_size = 0}});
  refused({.num_samples = 4, .batches = {.gradient_accumulation_steps = 0}});
  refused({.num_samples = 4, .batches = {.per_device_train_batch_size = 5, .drop_last = true}});
}

}  // namespace rematch
