// Windows that are used several times, in the loop of the program with recorded answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/recorded_loop.h"

namespace rematch {
namespace {

using test::RecordedLoop;
using test::run_loop;
using test::sample_ids;
using testing::HasSubstr;

/// Three micro-batches of one sample a window, over eight samples: windows A and B are full, C has
/// two micro-batches.
const WindowOptions kWindows{
    .batches = {.per_device_train_batch_size = 1, .gradient_accumulation_steps = 3}};

RecordedLoop run(int64_t num_steps, RolloutBufferSettings buffer, WindowOptions windows = kWindows,
                 Packer::Options packing = {}) {
  test::RecordedStage2 stage2;
  return run_loop(
      stage2, {.num_steps = num_steps, .windows = windows, .packing = packing, .buffer = buffer});
}

std::vector<const Segment*> addresses(const RecordedLoop::Step& step) {
  std::vector<const Segment*> found;
  for (const PackedRow& row : step.rows) {
    for (const auto& segment : row.segments) found.push_back(segment.get());
  }
  return found;
}

}  // namespace

// spec: buffer-02 buffer-12
TEST(RolloutBuffer, TheRepeatedStreamOfWindowsIsDeterministic) {
  const RecordedLoop loop = run(4, {.enabled = true, .m_steps = 2});
  // A,B,C, A,B,C and then the next window twice; each row is a micro-batch.
  ASSERT_EQ(loop.steps.size(), 4u);
  ASSERT_EQ(loop.steps[0].rows.size(), 3u);
  EXPECT_EQ(sample_ids(loop.steps[0].rows), sample_ids(loop.steps[1].rows));
  EXPECT_EQ(sample_ids(loop.steps[2].rows), sample_ids(loop.steps[3].rows));
  EXPECT_NE(sample_ids(loop.steps[0].rows), sample_ids(loop.steps[2].rows));
  const RecordedLoop again = run(4, {.enabled = true, .m_steps = 2});
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(sample_ids(loop.steps[i].rows), sample_ids(again.steps[i].rows));
  // Without the buffer the same windows come once each.
  const RecordedLoop once = run(2, {});
  EXPECT_EQ(sample_ids(once.steps[0].rows), sample_ids(loop.steps[0].rows));
  EXPECT_EQ(sample_ids(once.steps[1].rows), sample_ids(loop.steps[2].rows));
}

// spec: buffer-04
TEST(RolloutBuffer, OneEStepFeedsSeveralOptimizerSteps) {
  const RecordedLoop loop = run(6, {.enabled = true, .m_steps = 3});
  EXPECT_EQ(loop.num_built.size(), 2u) << "E-steps";
  EXPECT_EQ(addresses(loop.steps[0]), addresses(loop.steps[2]))
      << "the prepared segments themselves, encoded once";
  EXPECT_LT(loop.steps[2].metrics.at("loss"), loop.steps[0].metrics.at("loss"))
      << "each use is an update";
}

// spec: buffer-13
TEST(RolloutBuffer, BufferingDoesNotChangeTheFirstStepOfAWindow) {
  const RecordedLoop with = run(1, {.enabled = true, .m_steps = 4});
  const RecordedLoop without = run(1, {});
  EXPECT_EQ(sample_ids(with.steps[0].rows), sample_ids(without.steps[0].rows));
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(with.steps[0].rows[row].segments[0]->token_ids,
              without.steps[0].rows[row].segments[0]->token_ids);
    EXPECT_EQ(with.steps[0].rows[row].segments[0]->labels,
              without.steps[0].rows[row].segments[0]->labels);
    EXPECT_EQ(with.steps[0].rows[row].segments[0]->slots,
              without.steps[0].rows[row].segments[0]->slots);
  }
  for (const char* name : {"loss", "grad_norm", "loss/ce", "loss/coord"}) {
    EXPECT_EQ(with.steps[0].metrics.at(name), without.steps[0].metrics.at(name))
        << name << ", bit for bit";
  }
}

// spec: buffer-05 buffer-14
TEST(RolloutBuffer, ReuseSurvivesMutationOfItsInputs) {
  // Nothing can be popped or written: an M-step gets a const window of pointers to const segments.
  static_assert(
      std::is_same_v<decltype(std::declval<const RolloutBuffer&>().window()), const Window&>);
  static_assert(
      std::is_same_v<decltype(PackedRow::segments)::value_type, std::shared_ptr<const Segment>>);
  test::RecordedStage2 stage2;
  RolloutBuffer buffer({.enabled = true, .m_steps = 3});
  MetricsBag metrics;
  Packer packer({});
  buffer.open({.window = {.rows = packer.pack(stage2.segments({{0, 1}, {2}}), metrics)}});
  const std::vector<PackedRow> before = buffer.window().rows;
  std::vector<Segment> copies;
  for (const PackedRow& row : before) {
    for (const auto& segment : row.segments) copies.push_back(*segment);
  }
  MStep& mstep = stage2.mstep(1e-2);
  for (int use = 0; use < 2; ++use) {
    mstep.run(buffer.window(), metrics);
    buffer.finish_step(metrics);
  }
  size_t i = 0;
  for (const PackedRow& row : buffer.window().rows) {
    for (const auto& segment : row.segments) {
      EXPECT_EQ(segment->token_ids, copies.at(i).token_ids);
      EXPECT_EQ(segment->labels, copies.at(i).labels);
      EXPECT_EQ(segment->slots, copies.at(i).slots);
      ++i;
    }
  }
  EXPECT_EQ(i, copies.size());
}

// spec: buffer-07 buffer-16
TEST(RolloutBuffer, AFinalPartialWindowIsProcessedOnce) {
  // Eight samples: A, B (full, twice each) and C (two micro-batches, once), then the next epoch.
  const RecordedLoop loop = run(6, {.enabled = true, .m_steps = 2});
  EXPECT_EQ(loop.steps[4].rows.size(), 2u);
  EXPECT_EQ(loop.steps[5].rows.size(), 3u) << "the next epoch's first window";
  EXPECT_EQ(loop.num_built.size(), 4u);
  EXPECT_THAT(loop.told, HasSubstr("partial"));
  EXPECT_THAT(loop.told, HasSubstr("gradient_accumulation_steps")) << "a mitigation";
  EXPECT_EQ(RolloutBuffer({.enabled = true, .m_steps = 2}).epoch_steps(3, true), 5);
}

// spec: buffer-08 buffer-09 buffer-10 buffer-11
TEST(RolloutBuffer, LogsTellRolloutStepsFromReuse) {
  const RecordedLoop loop = run(4, {.enabled = true, .m_steps = 2});
  const std::vector<double> reuse = {0, 1, 0, 1}, step0 = {0, 0, 2, 2}, completed = {1, 2, 1, 2};
  for (size_t i = 0; i < 4; ++i) {
    const auto& metrics = loop.steps[i].metrics;
    EXPECT_EQ(metrics.at("rollout/buffer_reuse"), reuse[i]);
    EXPECT_EQ(metrics.at("rollout/buffer_window_step0"), step0[i]);
    EXPECT_EQ(metrics.at("rollout/buffer_completed_steps"), completed[i]);
    const bool is_reuse = reuse[i] == 1;
    for (const char* name : {"time/rollout_generate_s", "time/rollout_parse_match_s",
                             "time/rollout_teacher_encode_s"}) {
      EXPECT_EQ(metrics.at(name) == 0, is_reuse) << name;
    }
    EXPECT_EQ(metrics.count("rollout/f1"), is_reuse ? 0u : 1u)
        << "statistics of a rollout belong to the step that rolled out";
    EXPECT_EQ(metrics.count("rollout/gen_new_tokens_total"), is_reuse ? 0u : 1u);
  }
}

TEST(RolloutBuffer, AReuseSaysAgainWhetherItsWindowRolledOut) {
  for (const int64_t window_idx : {0, 1}) {
    RolloutBuffer buffer({.enabled = true, .m_steps = 2}, /*rollout_share=*/0.5);
    buffer.open({.window = {.window_idx = window_idx}});
    MetricsBag first, reuse;
    buffer.finish_step(first);
    buffer.finish_step(reuse);
    EXPECT_TRUE(first.values("rollout/is_rollout").empty()) << "the E-step says it";
    EXPECT_EQ(reuse.values("rollout/is_rollout"),
              std::vector<double>{window_rolls_out(window_idx, 0.5) ? 1.0 : 0.0});
  }
  EXPECT_TRUE(window_rolls_out(1, 0.5) && !window_rolls_out(0, 0.5));
}

TEST(RolloutBuffer, TheAdviceOnAPartialWindowNamesTheRanks) {
  const auto told_by = [](int num_ranks) {
    std::ostringstream out, err;
    Terminal terminal(out, err, {});
    RunLog(terminal, {.memory_bytes = [] { return 0; }, .num_ranks = num_ranks})
        .note_partial_window();
    return err.str();
  };
  EXPECT_THAT(told_by(1),
              HasSubstr("gradient_accumulation_steps so that it divides the number of samples"));
  EXPECT_THAT(told_by(2), HasSubstr("gradient_accumulation_steps x 2 ranks so that "
                                    "it divides the number of samples"));
}

TEST(RolloutBuffer, InCarryModeReuseTouchesNeitherBufferNorCarry) {
  const Packer::Options carry{.pack = {.scope = PackScope::kCarry}, .packing_length = 700};
  const WindowOptions windows{
      .batches = {.per_device_train_batch_size = 4, .gradient_accumulation_steps = 1}};
  const RecordedLoop buffered = run(4, {.enabled = true, .m_steps = 2}, windows, carry);
  const RecordedLoop plain = run(2, {}, windows, carry);
  EXPECT_EQ(sample_ids(buffered.steps[0].rows), sample_ids(plain.steps[0].rows));
  EXPECT_EQ(sample_ids(buffered.steps[1].rows), sample_ids(plain.steps[0].rows));
  EXPECT_EQ(sample_ids(buffered.steps[2].rows), sample_ids(plain.steps[1].rows));
  EXPECT_EQ(buffered.waiting.size(), plain.waiting.size());
}

}  // namespace rematch
