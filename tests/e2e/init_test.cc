// The run name that `rematch init` chooses, and the directories it refuses.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(Init, NamesTheRunAfterItsData) {
  test::Program program;
  const std::string image = test::Program::golden("images/0.png");
  const std::string record =
      R"({"images": [")" + image + R"("], "width": 64, "height": 64, "objects": []})" + "\n";
  const auto run_name = [&](const std::string& jsonl, const std::string& more) {
    program.dir().write(jsonl, record);
    const test::ProcessResult result =
        program.run("init " + test::source_path("demo/model") + " '" + jsonl + "'" + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string yaml = read_file(program.dir().file("rematch.yaml"));
    std::filesystem::remove(program.dir().file("rematch.yaml"));
    const size_t at = yaml.find("run_name: ") + 10;
    return yaml.substr(at, yaml.find(' ', at) - at);
  };
  EXPECT_EQ(run_name("red cards/train.jsonl", " --stage1"), "red-cards-stage1");
  EXPECT_EQ(run_name("data/pages.jsonl", ""), "pages-stage2");
  EXPECT_EQ(run_name("data/train.jsonl", ""), "stage2");
  const test::ProcessResult inside = program.script(
      "cd 'red cards' && $R init " + test::source_path("demo/model") + " train.jsonl");
  EXPECT_EQ(inside.exit_code, 0) << inside.err;
  EXPECT_TRUE(says(read_file(program.dir().file("red cards/rematch.yaml")), "red-cards-stage2"));
  program.dir().write("rematch.yaml", "");
  const test::ProcessResult exists =
      program.run("init " + test::Program::model() + " data/train.jsonl");
  EXPECT_EQ(exists.exit_code, 2);
  EXPECT_TRUE(says(exists.err, "does not overwrite")) << exists.err;
}

TEST(Init, SaysWhatIsWrongWithADirectoryOfAModel) {
  test::Program program;
  const std::string config = read_file(test::Program::model() + "/config.json");
  program.dir().write("half/config.json", config);
  program.dir().write("llama/config.json", R"({"model_type": "llama"})");
  const auto init = [&](const std::string& model) {
    return program.run("init " + model + " " + test::Program::golden("train.jsonl"));
  };
  const test::ProcessResult half = init("half"), llama = init("llama");
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_TRUE(says(half.err, "no tokenizer")) << half.err;
  EXPECT_TRUE(says(llama.err, "\"llama\"") && says(llama.err, "use a ")) << llama.err;
}

TEST(Init, SaysWhenThereAreTooManyClassesForThePrompt) {
  test::Program program;
  const std::string image = test::Program::golden("images/0.png");
  std::string records;
  for (int i = 0; i < 100; ++i)
    records += R"({"images": [")" + image +
               R"("], "width": 64, "height": 64, "objects": [{"desc": "c)" +
               std::to_string(i % 50) + R"(", "bbox_2d": [1, 2, 300, 400]}]})" + "\n";
  program.dir().write("train.jsonl", records);
  const test::ProcessResult result =
      program.run("init " + test::Program::model() + " train.jsonl --stage1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(says(result.err, "50 classes are too many for the prompt")) << result.err;
  EXPECT_TRUE(says(result.err, "--prompt-classes")) << result.err;
}

}  // namespace rematch
