// Scenarios of the requirement on strict alignment, each named after its sentence.
#include <gtest/gtest.h>

#include "e2e/recorded.h"
#include "pack/packer.h"
#include "support/capture.h"

namespace rematch {

// "The trainer MUST keep the existing sanity checks: prompt prefix tokenization matches
// generation."
// spec: pack-11
TEST(StrictAlignment, PromptPrefixTokenizationMatchesGeneration) {
  test::RecordedStage2 stage2;
  EXPECT_NO_THROW(stage2.segments({{0, 1}}));
  stage2.drift_prompt_ids(7);
  const UserError error = test::catch_user_error([&] { stage2.segments({{0, 1}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("7"), std::string::npos) << error.what();
}

// "… supervised coord indices fall within the assistant span."
// spec: pack-12
TEST(StrictAlignment, SupervisedCoordIndicesFallWithinTheAssistantSpan) {
  test::RecordedStage2 stage2;
  int num_slots = 0;
  for (const auto& micro_batch : stage2.segments({{0, 1, 2, 3}, {4, 5, 6, 7}})) {
    for (const auto& segment : micro_batch) {
      for (const Slot& slot : segment->slots_of(kCoordSlots)) {
        EXPECT_GE(slot.position, segment->prompt_len);
        EXPECT_LT(slot.position, segment->encoded_len());
        ++num_slots;
      }
      for (int position = 0; position < segment->prompt_len; ++position)
        EXPECT_EQ(segment->labels[static_cast<size_t>(position)], kIgnoreLabel);
    }
  }
  EXPECT_GT(num_slots, 20);
}

// "The trainer MUST generate rollouts first, then build each sample's teacher-forced Y_train
// sequence (rollout prefix + mandatory FN append)."
// spec: pack-04 select-02
TEST(TeacherForcedSequence, IsPromptPlusRolloutPrefixPlusMandatoryAppend) {
  test::RecordedStage2 stage2;
  const std::vector<ScoredRollout> scored = stage2.score({0, 1, 2, 3, 4, 5, 6, 7});
  const WindowSegments segments = stage2.segments({{0, 1, 2, 3, 4, 5, 6, 7}});
  bool any_missing = false;
  for (size_t i = 0; i < scored.size(); ++i) {
    const Segment& segment = *segments[0][i];
    const std::vector<int>& prefix = scored[i].parsed.prefix_token_ids;
    ASSERT_EQ(segment.prompt_len, static_cast<int>(scored[i].prompt.token_ids.size()));
    EXPECT_TRUE(
        std::equal(prefix.begin(), prefix.end(), segment.token_ids.begin() + segment.prompt_len));
    EXPECT_EQ(segment.encoded_len(),
              segment.prompt_len + segment.prefix_len + segment.append_len + 1);
    any_missing = any_missing || !scored[i].matching.false_negatives.empty();
  }
  EXPECT_TRUE(any_missing);
}

// "The trainer MUST treat each sample as an atomic segment": a row holds whole segments in sample
// order.
// spec: select-02
TEST(TeacherForcedSequence, EachSampleIsAnAtomicSegment) {
  test::RecordedStage2 stage2;
  MetricsBag metrics;
  const auto rows = Packer({}).rows_of(stage2.segments({{2, 0}, {5}}), metrics);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].segments[0]->sample_id, 2);
  EXPECT_EQ(rows[0].segments[1]->sample_id, 0);
  EXPECT_EQ(rows[1].segments[0]->sample_id, 5);
}

}  // namespace rematch
