// Packing after the rollout in E-step, packer, M-step and loop, with recorded answers.
#include <gtest/gtest.h>

#include <map>

#include "e2e/recorded_loop.h"

namespace rematch {
namespace {

constexpr int kPackingLength = 700;

Packer::Options carry() {
  return {.pack = {.buffer = 512, .scope = PackScope::kCarry}, .packing_length = kPackingLength};
}

}  // namespace

// spec: pack-01 pack-04 pack-12 pack-13
TEST(RolloutPacking, AStepTrainsOnPackedSegmentsOfUnpackedRollouts) {
  test::RecordedStage2 stage2;
  Packer packer(carry());
  std::vector<PackedRow> rows;
  MStep& mstep = stage2.mstep(1e-3);
  stage2.watch_rows([&](const PackedRow& row) { rows.push_back(row); });
  MetricsBag metrics;
  mstep.run({.rows = packer.pack(stage2.segments({{0, 1, 2, 3, 4, 5, 6, 7}}), metrics)}, metrics);

  // Rollouts were asked one sequence a sample; the forward pass ran on a row of several segments.
  ASSERT_EQ(stage2.prompts_seen().size(), 8u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(stage2.prompts_seen()[i].sample_id, static_cast<int64_t>(i));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0].segments.size(), 1u);
  EXPECT_LE(rows[0].total_len(), kPackingLength);
  EXPECT_FALSE(packer.waiting().empty()) << "a micro-batch holds more than the row";
  // A supervised token lies in the assistant span of a segment and is that segment's own.
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
TEST(RolloutPacking, PacksByTheLengthsOfTheBuiltSegments) {
  // The same samples with other rollouts have other lengths, and so another row.
  const auto row_of = [](size_t max_answer_tokens) {
    test::RecordedStage2 stage2;
    stage2.cut_answers(max_answer_tokens);
    MetricsBag metrics;
    const std::vector<PackedRow> rows =
        Packer(carry()).pack(stage2.segments({{0, 1, 2, 3, 4, 5, 6, 7}}), metrics);
    int total = 0;
    for (const auto& segment : rows.at(0).segments)
      total += static_cast<int>(segment->token_ids.size());
    EXPECT_EQ(metrics.sum("packing/post_rollout_selected_total_len"), total);
    EXPECT_LE(total, kPackingLength);
    return total;
  };
  EXPECT_NE(row_of(SIZE_MAX), row_of(30));
}

// spec: pack-06 select-06
TEST(RolloutPacking, ALongRunTrainsEverySegmentOnceOrKeepsItWaiting) {
  test::RecordedStage2 stage2;
  const test::RecordedLoop loop = test::run_loop(
      stage2,
      {.num_steps = 100,
       .windows = {.batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 2}},
       .packing = carry()});
  for (const auto& step : loop.steps) EXPECT_EQ(step.rows.size(), 2u) << "one row a micro-batch";
  EXPECT_EQ(loop.num_built, std::vector<int64_t>(100, 2 * 2));
  std::map<const Segment*, int> seen = loop.times_trained();
  EXPECT_EQ(seen.size() + loop.waiting.size(), 100u * 2 * 2);
  for (const auto& segment : loop.waiting) ++seen[segment.get()];
  EXPECT_EQ(seen.size(), 100u * 2 * 2) << "none waits that was trained";
  for (const auto& [segment, count] : seen) EXPECT_EQ(count, 1) << "sample " << segment->sample_id;
}

}  // namespace rematch
