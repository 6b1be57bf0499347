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

TEST(Init, NamesTheRunAfterItsStage) {
  test::Program program;
  for (const char* stage : {"stage1", "stage2"}) {
    const std::string made = std::string(stage) + ".yaml";
    const test::ProcessResult result =
        program.run("init " + test::source_path("demo/model") + " " +
                    test::Program::golden("train.jsonl") + " --" + stage + " --out " + made);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(says(read_file(program.dir().file(made)), std::string("run_name: ") + stage + " "));
  }
}

TEST(Init, OverwritesNoFile) {
  test::Program program;
  program.dir().write("rematch.yaml", "");
  const test::ProcessResult exists =
      program.run("init " + test::Program::model() + " " + test::Program::golden("train.jsonl"));
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

TEST(Init, TellsWhatOfACheckpointDoesNotFitNewRecords) {
  test::Program program;
  std::filesystem::copy(test::source_path("demo/model"), program.dir().file("model"),
                        std::filesystem::copy_options::recursive);
  program.dir().write("model/rematch_prompt.json",
                      R"({"system": "", "user": "Find. Labels: blue box, green box, blue )"
                      R"(triangle, green triangle, dark red box.",)"
                      R"( "max_new_tokens": 100, "answer_format": "coord_tokens"})");
  program.dir().write("model/rematch_order.json", "{}");
  const test::ProcessResult result =
      program.run("init model " + test::Program::golden("train.jsonl"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(says(result.err, "the class list in the checkpoint's user_prompt lacks red box:"))
      << result.err;
  EXPECT_TRUE(says(read_file(program.dir().file("rematch.yaml")), "object_ordering: own"));
  const test::ProcessResult checked = program.run(
      "check rematch.yaml --set custom.user_prompt=Find --set custom.object_ordering=sorted");
  EXPECT_TRUE(says(checked.out + checked.err, "custom.user_prompt is not that of model"))
      << checked.out << checked.err;
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
