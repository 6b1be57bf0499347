// Known numbers are compared: answer budgets, sizes of images, names of classes.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"

namespace rematch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string record(const std::string& image, int width, int height, const std::string& objects) {
  return fmt::format(R"({{"images": ["{}"], "width": {}, "height": {}, "objects": [{}]}})", image,
                     width, height, objects) +
         "\n";
}

std::string box(const std::string& desc, const std::string& bins) {
  return fmt::format(R"({{"desc": "{}", "bbox_2d": [{}]}})", desc, bins);
}

// The demonstration's checkpoint without its stored prompt.
void copy_model(const test::Program& program) {
  std::filesystem::copy(test::source_path("demo/model"), program.dir().file("base"));
  std::filesystem::remove(program.dir().file("base/rematch_prompt.json"));
}

// The same with another area of its largest image.
void copy_model(const test::Program& program, int64_t longest_edge) {
  copy_model(program);
  Json processor = read_json_file(program.dir().file("base/preprocessor_config.json"));
  processor["size"]["longest_edge"] = longest_edge;
  program.dir().write("base/preprocessor_config.json", processor.dump());
}

}  // namespace

TEST(DataSizes, CheckComparesTheLongestTrueAnswerWithTheBudget) {
  test::Program program;
  std::string objects = box("cat", "1, 2, 300, 400");
  for (int i = 1; i < 300; ++i) objects += ", " + box("cat", "1, 2, 300, 400");
  program.dir().write("long.jsonl", record(test::Program::golden("images/0.png"), 64, 64, objects));
  const std::string config = program.config(
      "custom: {train_jsonl: long.jsonl, val_jsonl: null}\nglobal_max_length: 20000\n"
      "training: {eval_strategy: \"no\"}\n");
  const test::ProcessResult small = program.run("check " + config + " --json");
  EXPECT_THAT(small.out, HasSubstr("the longest true answer of long.jsonl has"));
  const size_t at = small.out.find("max_new_tokens: ");
  ASSERT_NE(at, std::string::npos) << small.out;
  const std::string value = std::to_string(std::stoi(small.out.substr(at + 16)));
  const test::ProcessResult enough = program.run(
      "check " + config + " --json --set custom.extra.rollout_matching.max_new_tokens=" + value);
  EXPECT_THAT(enough.out, Not(HasSubstr("the longest true answer")));
}

TEST(DataSizes, InitScalesLargePhotos) {
  test::Program program;
  copy_model(program, 16777216);
  program.dir().write("photo.png", encode_png(Canvas(2400, 1600, kWhite).image()));
  program.dir().write("train.jsonl", record("photo.png", 2400, 1600,
                                            box("screw", "100, 100, 105, 200") + ", " +
                                                box("plate", "100, 100, 900, 900")));
  const test::ProcessResult made = program.run("init base train.jsonl --stage1 --out c.yaml");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string yaml = read_file(program.dir().file("c.yaml"));
  EXPECT_THAT(yaml, HasSubstr("max_pixels: 1310720"));
  EXPECT_THAT(yaml, HasSubstr("2400 x 1600 px"));
  const test::ProcessResult checked = program.run("check c.yaml");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

TEST(DataSizes, InitWritesTheModelsOwnBudget) {
  test::Program program;
  copy_model(program, 262144);
  program.dir().write("photo.png", encode_png(Canvas(2048, 2048, kWhite).image()));
  program.dir().write("train.jsonl",
                      record("photo.png", 2048, 2048, box("cat", "100, 100, 106, 106")));
  const test::ProcessResult written = program.run("init base train.jsonl --stage1");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const std::string yaml = read_file(program.dir().file("rematch.yaml"));
  EXPECT_THAT(yaml, HasSubstr("2048 x 2048 px: more than the model's processor takes"));
  EXPECT_THAT(yaml, HasSubstr("max_pixels: 262144"));
}

TEST(DataSizes, InitWritesTheClassesIntoThePromptUpToForty) {
  test::Program program;
  copy_model(program);
  const std::string image = test::Program::golden("images/0.png");
  std::string few, many;
  for (int i = 0; i < 41; ++i) {
    const std::string line = record(image, 64, 64,
                                    box(fmt::format("class {}", i), "1, 2, 300, 400") + ", " +
                                        box(fmt::format("class {}", i), "400, 2, 700, 400"));
    many += line;
    if (i < 40) few += line;
  }
  program.dir().write("few.jsonl", few);
  program.dir().write("many.jsonl", many);
  ASSERT_EQ(program.run("init base few.jsonl --stage1 --out few.yaml").exit_code, 0);
  ASSERT_EQ(program.run("init base many.jsonl --stage1 --out many.yaml").exit_code, 0);
  EXPECT_THAT(read_file(program.dir().file("few.yaml")),
              HasSubstr("Labels: class 0, class 1, class 10"));
  EXPECT_THAT(read_file(program.dir().file("many.yaml")), Not(HasSubstr("Labels:")));
  EXPECT_EQ(program.run("check few.yaml").exit_code, 0);
}

TEST(DataSizes, AnAdapterKeepsItsSizesOnABaseWithOthers) {
  test::Program program;
  copy_model(program);
  const test::ProcessResult trained = program.run(
      "train " + program.config("model: {model: base}\ntuner: {train_type: lora}\ntraining: "
                                "{max_steps: 1, eval_strategy: \"no\"}\n"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string adapter = program.run_dir() + "/checkpoint-1";
  EXPECT_TRUE(std::filesystem::exists(adapter + "/preprocessor_config.json"));
  std::filesystem::copy(program.dir().file("base"), program.dir().file("other"));
  Json processor = read_json_file(program.dir().file("other/preprocessor_config.json"));
  processor["size"]["longest_edge"] = 4096;
  program.dir().write("other/preprocessor_config.json", processor.dump());
  const std::string image = test::Program::golden("images/1.png"),
                    rest = " --adapter " + adapter + " " + image + " --max-new-tokens 8";
  const test::ProcessResult same = program.run("predict base" + rest),
                            other = program.run("predict other" + rest);
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(same.out, other.out);
  EXPECT_THAT(same.err, Not(HasSubstr("was trained with")));
  EXPECT_THAT(other.err, HasSubstr("to 4096 pixels; the adapter"));
  processor["patch_size"] = 14;
  program.dir().write("other/preprocessor_config.json", processor.dump());
  const test::ProcessResult refused = program.run("predict other" + rest);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("image processor is not the one"));
}

}  // namespace rematch
