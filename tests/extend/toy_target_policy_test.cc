// A target policy of one's own: every scene is taught to be empty.
#include <gtest/gtest.h>

#include "extend/in_process.h"
#include "learn/estep/teach/segment_builder.h"
#include "learn/estep/teach/target_policy.h"

namespace rematch {
namespace {

SegmentResult nothing_is_there(const TargetInput& input, const AnswerFormat& format,
                               const TargetSettings&) {
  std::vector<TaughtToken> answer;
  for (const int id : format.tokenizer().encode("{}")) answer.push_back({.id = id, .label = id});
  SegmentResult result;
  result.append_text = "{}";
  result.segment = SegmentBuilder(input.prompt).finish(answer, format.im_end_id());
  return result;
}

const bool target_added =
    target_policies().add({"toy_empty", "teaches an empty scene", nothing_is_there});

}  // namespace

TEST(ToyTargetPolicy, IsChosenByYamlAndTeachesItsSegments) {
  ASSERT_TRUE(target_added);
  const auto log = test::trained_with("target_policy: toy_empty");
  ASSERT_EQ(log.size(), 2u);
  for (const auto& line : log) {
    EXPECT_GT(line.at("rollout/gt_objects"), 0);
    EXPECT_EQ(line.at("rollout/fn_appended"), 0);
    EXPECT_LE(line.at("rollout/append_len_mean"), 2) << "tokens of {}";
    EXPECT_EQ(line.at("loss/coord"), 0);
    EXPECT_GT(line.at("loss/ce"), 0);
  }
}

}  // namespace rematch
