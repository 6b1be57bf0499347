#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using testing::HasSubstr;

std::string config_lines() {
  return "model: {model: " + test::source_path("tests/shapes/model") +
         "}\ncustom: {extra: {rollout_matching: {rollout_backend: native, max_new_tokens: 160}}}\n";
}

}  // namespace

TEST(Probe, SaysInWordsWhatToDo) {
  test::Program program;
  const test::ProcessResult result =
      program.run("probe " + program.config(config_lines()) + " --samples 2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text : {"F1 @ IoU 0.5 ", "label accuracy of matches", "malformed answers",
                           "neighbours in sorted order", "found by 2 samples", "verdict: "}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
  EXPECT_THAT(result.out, testing::Not(HasSubstr("f1_iou50"))) << "the names of --json";
}

TEST(Probe, GivesTheSameNumbersAsJsonEveryTimeAndCountsEachObjectOnce) {
  test::Program program;
  const std::string command = "probe " + program.config(config_lines()) + " --samples 3 --json";
  const test::ProcessResult result = program.run(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "probe");
  EXPECT_EQ(json["samples"], 3);
  EXPECT_EQ(json["num_images"], 4);
  int64_t images = 0;
  for (const Json& bucket : json["by_object_count"]) {
    images += bucket["images"].get<int64_t>();
    EXPECT_LE(bucket["found_by_samples"].get<int64_t>(), bucket["missing"].get<int64_t>());
    EXPECT_LE(bucket["missing"].get<int64_t>(), bucket["objects"].get<int64_t>());
  }
  EXPECT_EQ(images, 4);
  EXPECT_FALSE(json["verdict"]["headline"].get<std::string>().empty());
  EXPECT_EQ(program.run(command).out, result.out) << "draws are keyed";
}

TEST(Probe, NeedsValidationDataAndAtLeastOneSample) {
  test::Program program;
  const test::ProcessResult no_data =
      program.run("probe " + program.config(config_lines()) + " --set custom.val_jsonl=null");
  EXPECT_EQ(no_data.exit_code, 2);
  EXPECT_THAT(no_data.err, HasSubstr("no validation data to evaluate on"));
  EXPECT_EQ(program.run("probe " + program.config(config_lines()) + " --samples 0").exit_code, 2);
}

}  // namespace rematch
