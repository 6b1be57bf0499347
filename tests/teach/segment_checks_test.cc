#include "learn/estep/teach/segment_checks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

Segment small_segment() {
  Segment segment;
  segment.sample_id = 17;
  segment.where = "train.jsonl:18";
  segment.token_ids = {1, 2, 3, 4, 5};
  segment.labels = {-100, -100, -100, 4, 5};
  segment.slots[kCoordSlots] = {{2, 999, SlotSource::kAppend}};
  segment.prompt_len = 2;
  segment.append_len = 2;
  return segment;
}

void expect_refused(const Segment& segment, const std::string& mention) {
  const UserError error = test::catch_user_error([&] { check_supervision(segment); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find(mention), std::string::npos) << error.what();
  EXPECT_NE(error.problems()[0].where.find("17"), std::string::npos);
}

}  // namespace

// spec: pack-11
TEST(CheckPromptIds, NamesTheFirstDifferingPosition) {
  EXPECT_NO_THROW(check_prompt_ids({1, 2, 3}, {1, 2, 3}, "vllm", "a.jsonl:1"));
  const UserError error =
      test::catch_user_error([] { check_prompt_ids({1, 2, 3}, {1, 9, 3}, "vllm", "a.jsonl:1"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].error.find("position 1"), std::string::npos);
  EXPECT_EQ(error.problems()[0].where, "a.jsonl:1");
  EXPECT_NE(error.problems()[0].what.find("id 2"), std::string::npos);
  EXPECT_NE(error.problems()[0].what.find("id 9"), std::string::npos);
}

TEST(CheckPromptIds, SeesAMissingOrExtraEnd) {
  for (const auto& theirs : {std::vector<int>{1, 2}, std::vector<int>{1, 2, 3, 4}}) {
    const UserError error =
        test::catch_user_error([&] { check_prompt_ids({1, 2, 3}, theirs, "vllm", ""); });
    EXPECT_NE(error.problems()[0].error.find(theirs.size() == 2 ? "position 2" : "position 3"),
              std::string::npos);
    EXPECT_NE(error.problems()[0].what.find("its end"), std::string::npos);
  }
}

TEST(CheckSupervision, AcceptsTheAssistantSpan) {
  EXPECT_NO_THROW(check_supervision(small_segment()));
}

TEST(CheckSupervision, RefusesLabelsOutsideTheAssistantSpan) {
  Segment segment = small_segment();
  segment.labels[1] = 2;
  expect_refused(segment, "position 1");
}

TEST(CheckSupervision, RefusesALabelThatIsNotItsToken) {
  Segment segment = small_segment();
  segment.labels[3] = 5;
  expect_refused(segment, "not its token");
}

TEST(CheckSupervision, RefusesLabelsOfAnotherLength) {
  Segment segment = small_segment();
  segment.labels.pop_back();
  expect_refused(segment, "length");
}

// spec: pack-12
TEST(CheckSupervision, RefusesCoordSlotsOutsideTheAssistantSpan) {
  for (const int position : {-1, 0, 1, 5, 100}) {
    Segment segment = small_segment();
    segment.slots[kCoordSlots][0].position = position;
    expect_refused(segment, "outside the assistant span");
  }
}

TEST(CheckSupervision, RefusesBinsOutOfRangeRepeatedAndDoublySupervisedPositions) {
  Segment segment = small_segment();
  segment.slots[kCoordSlots][0].target = 1000;
  expect_refused(segment, "bin 1000");
  segment = small_segment();
  segment.slots[kCoordSlots].push_back(segment.slots[kCoordSlots][0]);
  expect_refused(segment, "ascend");
  segment = small_segment();
  segment.slots[kCoordSlots][0].position = 3;
  expect_refused(segment, "a label and a coord slot");
}

TEST(CheckSupervision, RefusesThePositionThatHasNothingBeforeIt) {
  Segment segment = small_segment();
  segment.prompt_len = 0;
  segment.labels[0] = 1;
  expect_refused(segment, "position 0");
}

TEST(CheckEncodedLen, AllowsExactlyTheCap) {
  EXPECT_NO_THROW(check_encoded_len(small_segment(), 5));
  EXPECT_NO_THROW(check_encoded_len(small_segment(), 0));
}

TEST(CheckSupervision, SaysThatAnEmptyPromptLeavesNothingBeforeTheFirstToken) {
  Segment segment = small_segment();
  segment.prompt_len = 0;
  segment.labels[0] = 1;
  expect_refused(segment, "the prompt is empty");
  segment.labels[0] = kIgnoreLabel;
  segment.slots[kCoordSlots][0].position = 0;
  expect_refused(segment, "the prompt is empty");
}

TEST(CheckEncodedLen, KeepsTheStateOfTheRun) {
  EXPECT_NO_THROW(check_encoded_len(small_segment(), 5));
  EXPECT_THROW(check_encoded_len(small_segment(), 4), KeepsState);
}

TEST(CheckEncodedLen, RefusesALongerSegmentWithNumbersAndMitigations) {
  const UserError error = test::catch_user_error([] { check_encoded_len(small_segment(), 4); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const Problem& problem = error.problems()[0];
  EXPECT_NE(problem.where.find("train.jsonl:18"), std::string::npos);
  EXPECT_NE(problem.what.find("encoded_len 5"), std::string::npos);
  EXPECT_NE(problem.what.find("cap 4"), std::string::npos);
  for (const char* mitigation : {"global_max_length", "max_new_tokens", "training.packing"})
    EXPECT_NE(problem.fix.find(mitigation), std::string::npos) << mitigation;
}

}  // namespace rematch
