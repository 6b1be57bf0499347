// The requirement on post-rollout packing: its sentences and scenarios, on the E-step, packer,
// M-step and loop of the program with recorded answers in the place of an engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "e2e/recorded_loop.h"
#include "support/capture.h"

namespace rematch {
namespace {

using testing::HasSubstr;

constexpr int kPackingLength = 700;

Packer::Options carry(int packing_buffer = 512) {
  return {.pack = {.buffer = packing_buffer, .scope = PackScope::kCarry},
          .packing_length = kPackingLength};
}

}  // namespace

// spec: pack-01 pack-04 pack-13
TEST(PackingSpec, PackingEnabledDoesNotBreakRolloutMatchingTraining) {
  test::RecordedStage2 stage2;
  Packer packer(carry());
  std::vector<PackedRow> rows;
  MStep& mstep = stage2.mstep(1e-3);
  stage2.watch_rows([&](const PackedRow& row) { rows.push_back(row); });
  MetricsBag metrics;
  mstep.run({.rows = packer.rows_of(stage2.segments({{0, 1, 2, 3}}), metrics)}, metrics);

  // Rollouts were asked one sequence a sample; the forward pass ran on a row of several segments.
  ASSERT_EQ(stage2.prompts_seen().size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(stage2.prompts_seen()[i].sample_id, static_cast<int64_t>(i));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0].segments.size(), 1u);
  EXPECT_LE(rows[0].total_len(), kPackingLength);
  // What is supervised lies in the assistant span of a segment and is that segment's own token.
  const RowSupervision supervision = RowSupervision::from(rows[0]);
  std::vector<int> row_ids;
  std::vector<bool> is_assistant;
  for (const auto& segment : rows[0].segments) {
    row_ids.insert(row_ids.end(), segment->token_ids.begin(), segment->token_ids.end());
    for (int position = 0; position < segment->encoded_len(); ++position)
      is_assistant.push_back(position >= segment->prompt_len);
  }
  const KindTargets& ce = supervision.by_kind.at(kLabels);
  ASSERT_FALSE(ce.positions.empty());
  for (size_t i = 0; i < ce.positions.size(); ++i) {
    const auto position = static_cast<size_t>(ce.positions[i]);
    EXPECT_TRUE(is_assistant.at(position));
    EXPECT_EQ(row_ids.at(position), ce.values[i]);
  }
  for (const int64_t position : supervision.by_kind.at(kCoordSlots).positions)
    EXPECT_TRUE(is_assistant.at(static_cast<size_t>(position)));
  EXPECT_GT(metrics.sum("loss"), 0);
  EXPECT_GT(metrics.sum("packing/post_rollout_fill"), 0);
}

// spec: pack-05
TEST(PackingSpec, PacksByTheLengthsAsBuiltNotByEstimatesOfTheDataset) {
  // The same samples with other rollouts have other lengths, and so another row.
  const auto row_of = [](size_t max_answer_tokens) {
    test::RecordedStage2 stage2;
    stage2.cut_answers(max_answer_tokens);
    MetricsBag metrics;
    const std::vector<PackedRow> rows =
        Packer(carry()).rows_of(stage2.segments({{0, 1, 2, 3, 4, 5, 6, 7}}), metrics);
    int total = 0;
    for (const auto& segment : rows.at(0).segments)
      total += static_cast<int>(segment->token_ids.size());
    EXPECT_EQ(metrics.sum("packing/post_rollout_selected_total_len"), total);
    EXPECT_LE(total, kPackingLength);
    return total;
  };
  EXPECT_NE(row_of(SIZE_MAX), row_of(30));
}

// spec: pack-06 select-02 select-06
TEST(PackingSpec, ASampleIsAnAtomicSegmentAndNeverSplitAcrossForwards) {
  test::RecordedStage2 stage2;
  const test::RecordedLoop loop = test::run_loop(
      stage2,
      {.num_steps = 12,
       .windows = {.batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 2}},
       .packing = carry()});
  for (const auto& step : loop.steps) EXPECT_EQ(step.rows.size(), 2u) << "one row a micro-batch";
  for (const auto& [segment, count] : loop.times_trained())
    EXPECT_EQ(count, 1) << "sample " << segment->sample_id;
}

// spec: pack-07 select-15
TEST(PackingSpec, EverySupervisionMaskKeepsItsOffsetInTheRow) {
  test::RecordedStage2 stage2;
  MetricsBag metrics;
  for (const PackedRow& row :
       Packer(carry()).rows_of(stage2.segments({{0, 1, 2}, {3, 4, 5}, {6, 7}}), metrics)) {
    std::vector<int64_t> ce_positions, ce_labels, slot_positions, slot_bins;
    int64_t offset = 0;
    for (const auto& segment : row.segments) {
      for (int64_t i = 0; i < segment->encoded_len(); ++i) {
        if (segment->labels[static_cast<size_t>(i)] == kIgnoreLabel) continue;
        ce_positions.push_back(offset + i);
        ce_labels.push_back(segment->token_ids[static_cast<size_t>(i)]);
      }
      for (const Slot& slot : segment->slots_of(kCoordSlots)) {
        slot_positions.push_back(offset + slot.position);
        slot_bins.push_back(slot.target);
      }
      offset += segment->encoded_len();
    }
    RowSupervision supervision = RowSupervision::from(row);
    EXPECT_EQ(supervision.by_kind[kLabels].positions, ce_positions);
    EXPECT_EQ(supervision.by_kind[kLabels].values, ce_labels);
    EXPECT_EQ(supervision.by_kind[kCoordSlots].positions, slot_positions);
    EXPECT_EQ(supervision.by_kind[kCoordSlots].values, slot_bins);
  }
}

// spec: pack-08 pack-15 select-04
TEST(PackingSpec, CarryBufferPreservesSegmentsWithoutSplitting) {
  test::RecordedStage2 stage2;
  Packer packer(carry());
  MetricsBag metrics;
  packer.rows_of(stage2.segments({{0, 1, 2, 3, 4, 5, 6, 7}}), metrics);
  const std::vector<std::shared_ptr<const Segment>> left = packer.waiting();
  ASSERT_FALSE(left.empty());
  // The next step trains a subset of the left-over and the new segments; the others are the very
  // segments that waited.
  const std::vector<PackedRow> rows = packer.rows_of(stage2.segments({{0}}), metrics);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].segments[0], left[0]) << "the oldest goes first";
  size_t trained = rows[0].segments.size();
  EXPECT_EQ(trained + packer.waiting().size(), left.size() + 1);
  for (const auto& segment : packer.waiting())
    EXPECT_EQ(static_cast<int>(segment->labels.size()), segment->encoded_len());
}

// spec: pack-10 pack-16
TEST(PackingSpec, CarryBufferOverflowFailsFastWithActionableGuidance) {
  test::RecordedStage2 stage2;
  const UserError error = test::catch_user_error([&] {
    test::run_loop(stage2, {.num_steps = 50,
                            .windows = {.batches = {.per_device_train_batch_size = 8}},
                            .packing = carry(/*packing_buffer=*/9)});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_THAT(error.problems()[0].what, HasSubstr("packing_buffer 9"));
  for (const char* way : {"per_device_train_batch_size", "training.packing_buffer",
                          "post_rollout_pack_scope: window"}) {
    EXPECT_THAT(error.problems()[0].fix, HasSubstr(way));
  }
}

// spec: select-13 select-21
TEST(PackingSpec, OversizedSegmentFailsFast) {
  test::RecordedStage2 stage2;
  Packer packer({.pack = {.scope = PackScope::kCarry}, .packing_length = 60});
  MetricsBag metrics;
  const UserError error =
      test::catch_user_error([&] { packer.rows_of(stage2.segments({{0, 1}}), metrics); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_THAT(error.problems()[0].fix, HasSubstr("global_max_length"));
  EXPECT_TRUE(packer.waiting().empty()) << "at insertion, not when it is the oldest";
}

// "A 200-step run with a carry buffer loses no segment."
TEST(PackingSpec, TwoHundredStepsTrainEverySegmentOnceOrKeepItWaiting) {
  test::RecordedStage2 stage2;
  const test::RecordedLoop loop = test::run_loop(
      stage2,
      {.num_steps = 200,
       .windows = {.batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 2}},
       .packing = carry()});
  EXPECT_EQ(loop.num_built, std::vector<int64_t>(200, 2 * 2));
  std::map<const Segment*, int> seen = loop.times_trained();
  EXPECT_EQ(seen.size() + loop.waiting.size(), 200u * 2 * 2);
  for (const auto& segment : loop.waiting) ++seen[segment.get()];
  EXPECT_EQ(seen.size(), 200u * 2 * 2) << "none waits that was trained";
  for (const auto& [segment, count] : seen) EXPECT_EQ(count, 1) << "sample " << segment->sample_id;
}

}  // namespace rematch
