#include "tools/records/answers_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

using testing::HasSubstr;

class AnswersFile : public testing::Test {
 protected:
  AnswersFile() {
    directory_.write("data/val.jsonl", record("photos/a.png") + record("photos/b c.png") + "\n" +
                                           record("photos/a.png", R"("prompt": "Cats?", )"));
  }
  static std::string record(const std::string& image, const std::string& more = "") {
    return R"({"images": [")" + image + R"("], "width": 64, "height": 64, )" + more +
           "\"objects\": []}\n";
  }
  GivenAnswers read(const std::string& lines) {
    return read_answers(directory_.write("out/answers.jsonl", lines), records());
  }
  Dataset records() {
    return Dataset::load(directory_.file("data/val.jsonl"), {.check_image_files = false});
  }
  std::vector<Problem> problems(const std::string& lines) {
    return test::catch_user_error([&] { read(lines); }).problems();
  }

  test::TempDir directory_;
};

}  // namespace

TEST_F(AnswersFile, NamesRecordsByLineOrByImage) {
  const GivenAnswers answers = read(R"({"id": 0, "text": "one"})"
                                    "\n\n"
                                    R"({"image": "photos/b c.png", "text": "two", "more": [1]})"
                                    "\n"
                                    R"({"sample_id": 3, "response": "three"})");
  ASSERT_EQ(answers.texts.size(), 3u);
  EXPECT_EQ(answers.texts[0], "one");
  EXPECT_EQ(answers.texts[1], "two");
  EXPECT_EQ(answers.texts[2], "three");
  EXPECT_EQ(answers.num_answered(), 3);
  require_all_answered(answers, records(), "answers.jsonl");
}

TEST_F(AnswersFile, FindsAnImageByItsPathAndByItsName) {
  for (const std::string& image :
       {directory_.file("data/photos/b c.png"), std::string("../data/photos/b c.png"),
        std::string("/elsewhere/b c.png"), std::string("b c.png"),
        "file://" + directory_.file("data/photos/b%20c.png")})
    EXPECT_EQ(read("{\"image\": \"" + image + "\", \"text\": \"x\"}").texts[1], "x") << image;
  EXPECT_EQ(read(R"({"images": [{"path": "b c.png"}], "response": ""})").texts[1], "");
}

TEST_F(AnswersFile, ReportsEveryFaultyLine) {
  const std::vector<Problem> found = problems(
      "{\n"
      R"({"id": 2, "text": "an empty line"})"
      "\n"
      R"({"image": "a.png", "text": "which of the two?"})"
      "\n"
      R"({"image": "bc.png", "text": "misspelt"})"
      "\n"
      R"({"id": 0})"
      "\n"
      R"({"id": 1, "text": 7})"
      "\n"
      R"({"id": 1, "text": "again"})"
      "\n"
      R"({"text": "of what?"})"
      "\n"
      R"({"id": "7", "text": "x"})"
      "\n");
  ASSERT_EQ(found.size(), 9u);
  EXPECT_THAT(found[1].what, HasSubstr("no record in line 3 (id 2)"));
  EXPECT_THAT(found[2].error, HasSubstr("several records"));
  EXPECT_THAT(found[2].fix, HasSubstr("\"id\""));
  EXPECT_THAT(found[3].what, HasSubstr("bc.png"));
  EXPECT_THAT(found[4].error, HasSubstr("no text"));
  EXPECT_THAT(found[5].error, HasSubstr("not a string"));
  EXPECT_THAT(found[6].what, HasSubstr("line 6"));
  EXPECT_THAT(found[7].error, HasSubstr("names no record"));
  EXPECT_EQ(found[8].what, "its id \"7\" is no integer");
}

TEST_F(AnswersFile, AnImageCountsMoreThanAnIdOfItsOwn) {
  EXPECT_EQ(read(R"({"image": "b c.png", "id": 0, "text": "x"})").texts[1], "x");
  EXPECT_EQ(read(R"({"image": "b c.png", "id": "000139", "text": "x"})").texts[1], "x");
  EXPECT_EQ(read(R"({"image": "a.png", "id": 3, "text": "x"})").texts[2], "x");
  EXPECT_THAT(problems(R"({"image": "a.png", "id": 77, "text": "x"})")[0].error,
              HasSubstr("several records"));
}

TEST_F(AnswersFile, ReadsWhatServersReturn) {
  const std::string choices = R"("choices": [{"message": {"role": "assistant", "content": "x"}}])";
  EXPECT_EQ(read("{\"id\": \"vllm-0\", \"custom_id\": \"0\", \"response\": {\"status_code\": 200, "
                 "\"body\": {" +
                 choices + "}}, \"error\": null}")
                .texts[0],
            "x");
  EXPECT_EQ(read("{\"custom_id\": \"b c.png\", " + choices + "}").texts[1], "x");
  EXPECT_EQ(read(R"({"image": "b c.png", "content": "x", "stop": true})").texts[1], "x");
  EXPECT_THAT(problems(R"({"id": 0, "text": "Find all.", "response": "[]"})")[0].error,
              HasSubstr("two texts"));
}

TEST_F(AnswersFile, ShowsThreeOfAKindOfProblem) {
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += "{\"text\": \"of what?\"}\n";
  const std::vector<Problem> found = problems(lines);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_THAT(found[3].error, HasSubstr("9 problems in 9 lines, of which 3 are shown"));
}

TEST_F(AnswersFile, RecordsWithoutAnAnswerAreNamed) {
  const GivenAnswers answers =
      read(R"({"id": 0, "text": "one"})"
           "\n"
           R"({"image": "b c.png", "objects": [], "status": "unreadable", "error": "broken"})");
  EXPECT_EQ(answers.num_answered(), 1);
  EXPECT_THAT(answers.failed.at(1), HasSubstr("answers.jsonl:2 (\"broken\")"));
  const UserError error =
      test::catch_user_error([&] { require_all_answered(answers, records(), "answers.jsonl"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_THAT(error.problems()[0].what, HasSubstr("1 of 3 records: "));
  EXPECT_THAT(error.problems()[0].what, HasSubstr("val.jsonl:4"));
  EXPECT_THAT(error.problems()[0].fix, HasSubstr("--answered-only"));
}

TEST_F(AnswersFile, AFileWithoutAnAnswerHasNoOthersToScore) {
  const GivenAnswers answers = read("");
  const UserError error =
      test::catch_user_error([&] { require_all_answered(answers, records(), "answers.jsonl"); });
  EXPECT_EQ(error.problems()[0].fix.find("--answered-only"), std::string::npos);
}

TEST_F(AnswersFile, FailedLinesOfABatchLeaveTheRest) {
  const GivenAnswers answers = read(
      R"({"custom_id": "0", "response": {"status_code": 429, "body": {"error": {}}}})"
      "\n"
      R"({"custom_id": "1", "choices": [{"message": {"content": null, "refusal": "I can't."}}]})"
      "\n"
      R"({"custom_id": "3", "response": {"status_code": 200, "body": {"choices": []}}})");
  EXPECT_THAT(answers.failed.at(2), HasSubstr("answers.jsonl:3 (no choices)"));
  EXPECT_THAT(answers.failed.at(0), HasSubstr("answers.jsonl:1 (status 429)"));
  EXPECT_EQ(answers.texts[1], "") << "it answered nothing";
  EXPECT_THAT(answers.cut, testing::ElementsAre(HasSubstr(":2 (refusal \"I can't.\")")));
  EXPECT_EQ(answers.num_answered(), 1);
  require_all_answered(answers, records(), "answers.jsonl");
}

TEST_F(AnswersFile, PathsOfWindowsLeadToTheLastName) {
  EXPECT_EQ(read(R"({"image": "D:\\data\\b c.png", "text": "x"})").texts[1], "x");
}

}  // namespace rematch
