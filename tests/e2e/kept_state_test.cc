// State that a run keeps when the segments of a window cannot be used (BEHAVIOUR 2.9), on the
// program's own loop with recorded answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/keeps_state.h"
#include "e2e/recorded_loop.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::RecordedLoop;
using testing::HasSubstr;

constexpr int64_t kNumSteps = 4;

/// Windows of two samples in one micro-batch.
const WindowOptions kWindows{
    .batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 1}};

/// Sample ids of the windows of an undisturbed run, and the lengths of all segments.
struct Undisturbed {
  std::vector<std::vector<int64_t>> windows;
  std::map<int64_t, int> lengths;

  Undisturbed() {
    test::RecordedStage2 stage2;
    for (const RecordedLoop::Step& step :
         test::run_loop(stage2, {.num_steps = kNumSteps, .windows = kWindows}).steps) {
      windows.push_back(test::sample_ids(step.rows).at(0));
      for (const auto& segment : step.rows.at(0).segments)
        lengths[segment->sample_id] = segment->encoded_len();
    }
  }
  int longest_of(size_t window) const {
    return std::max(lengths.at(windows[window][0]), lengths.at(windows[window][1]));
  }
  /// A window after the first that has a longer segment than those before it, and than its other
  /// one; and a cap between them.
  std::pair<size_t, int> first_too_long() const {
    int before = longest_of(0);
    for (size_t window = 1; window < windows.size(); ++window) {
      const int shorter = std::min(lengths.at(windows[window][0]), lengths.at(windows[window][1]));
      if (longest_of(window) > std::max(before, shorter))
        return {window, std::max(before, shorter)};
      before = std::max(before, longest_of(window));
    }
    return {0, 0};
  }
};

}  // namespace

TEST(KeptState, ASegmentThatIsTooLongEndsTheRunAfterTheStepsBeforeAreSaved) {
  const Undisturbed all;
  const auto [window, cap] = all.first_too_long();
  ASSERT_GT(window, 0u);
  test::RecordedStage2 stage2;
  stage2.cap_segments(cap);
  std::vector<int64_t> saved;
  const auto on_save = [&](const WindowCursor& cursor, const Packer&) {
    saved.push_back(cursor.window_idx);
  };
  const UserError error = test::catch_user_error([&] {
    test::run_loop(stage2, {.num_steps = kNumSteps, .windows = kWindows, .on_save = on_save});
  });
  EXPECT_THAT(error.problems()[0].error, HasSubstr("a segment is longer than global_max_length"));
  EXPECT_THAT(error.problems()[0].fix, HasSubstr("data.on_bad_sample: skip"));
  EXPECT_EQ(saved, std::vector<int64_t>{static_cast<int64_t>(window)})
      << "the state before the window";
}

TEST(KeptState, ASegmentThatIsTooLongIsLeftOutAndCountedOnRequest) {
  const Undisturbed all;
  const auto [window, cap] = all.first_too_long();
  ASSERT_GT(window, 0u);
  test::RecordedStage2 stage2;
  const auto num_steps = static_cast<int64_t>(window) + 1;
  const RecordedLoop run = test::run_loop(
      stage2, {.num_steps = num_steps, .windows = kWindows, .skip_longer_than = cap});
  ASSERT_EQ(std::ssize(run.steps), num_steps);
  EXPECT_EQ(run.steps[window].metrics.at("data/skipped_samples"), 1);
  EXPECT_EQ(run.steps[0].metrics.at("data/skipped_samples"), 0);
  ASSERT_EQ(run.steps[window].rows.at(0).segments.size(), 1u);
  EXPECT_LE(run.steps[window].rows[0].segments[0]->encoded_len(), cap);
  EXPECT_EQ(test::sample_ids(run.steps[0].rows).at(0), all.windows[0]);
}

TEST(KeptState, AWindowOfSegmentsThatAreTooLongEndsTheRunAfterTheStepsBeforeAreSaved) {
  test::RecordedStage2 stage2;
  std::vector<int64_t> saved;
  const auto on_save = [&](const WindowCursor& cursor, const Packer&) {
    saved.push_back(cursor.window_idx);
  };
  const UserError error = test::catch_user_error([&] {
    test::run_loop(
        stage2,
        {.num_steps = kNumSteps, .windows = kWindows, .skip_longer_than = 1, .on_save = on_save});
  });
  EXPECT_THAT(error.problems()[0].error, HasSubstr("no segment of a window can be used"));
  EXPECT_EQ(saved, std::vector<int64_t>{0}) << "the state before the window";
}

TEST(KeptState, ACarryBufferThatOverflowsIsSavedAsItWasBeforeTheWindow) {
  // Each window inserts two micro-batches of two and takes two rows of one or more.
  const WindowOptions windows{
      .batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 2}};
  const Undisturbed all;
  int longest = 0;
  for (const auto& [id, length] : all.lengths) longest = std::max(longest, length);
  const auto run = [&](int packing_buffer,
                       const std::function<void(const WindowCursor&, const Packer&)>& on_save) {
    test::RecordedStage2 stage2;
    return test::run_loop(stage2, {.num_steps = 2,
                                   .windows = windows,
                                   .packing = {.pack = {.buffer = packing_buffer,
                                                        .selector = PackingSelector::kFifo,
                                                        .scope = PackScope::kCarry},
                                               .packing_length = longest},
                                   .on_save = on_save});
  };
  const auto most_waiting = [](const RecordedLoop& loop, size_t step) {
    return static_cast<int>(loop.steps[step].metrics.at("packing/post_rollout_buffer"));
  };
  const RecordedLoop enough = run(512, {});
  const int waiting = most_waiting(enough, 0);
  ASSERT_GT(waiting, 0);
  std::vector<std::pair<int64_t, size_t>> saved;
  const UserError error = test::catch_user_error([&] {
    run(waiting + 2, [&](const WindowCursor& cursor, const Packer& packer) {
      saved.emplace_back(cursor.window_idx, packer.waiting().size());
    });
  });
  EXPECT_THAT(error.problems()[0].error, HasSubstr("the packing carry buffer would overflow"));
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].first, 1);
  EXPECT_EQ(saved[0].second, static_cast<size_t>(waiting))
      << "without the micro-batches that were inserted before the one too many";
}

}  // namespace rematch
