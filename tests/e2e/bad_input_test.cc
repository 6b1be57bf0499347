// Every mistake a user can make ends in four lines that say what, where and how to fix it, and in
// the right exit code.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

void expect_error(const test::ProcessResult& result, int exit_code, const std::string& expected) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  for (const char* part : {"error: ", "where: ", "what:  ", "fix:   "})
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  EXPECT_NE(result.err.find(expected), std::string::npos) << result.err;
}

test::ProcessResult train_with(const test::Program& program, const std::string& lines) {
  return program.run("train " + program.config(lines));
}

// A JSONL with one bad record, next to the golden images.
test::ProcessResult train_on(const std::string& record) {
  test::Program program;
  std::filesystem::copy(test::Program::golden("images"), program.dir().file("images"));
  program.dir().write("bad.jsonl", record + "\n");
  return train_with(program, "custom: {train_jsonl: bad.jsonl}\n");
}

// A copy of the golden model in which one file is replaced.
test::ProcessResult train_with_model_file(const std::string& name, const std::string& content) {
  test::Program program;
  std::filesystem::copy(test::Program::model(), program.dir().file("model"));
  program.dir().write("model/" + name, content);
  return train_with(program, "model: {model: model}\n");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST(BadInput, MisspeltKeysAreAllNamedTogether) {
  test::Program program;
  const test::ProcessResult result =
      train_with(program, "training: {learning_rte: 1}\ncustom: {objct_ordering: sorted}\n");
  expect_error(result, 2, "learning_rate");
  expect_error(result, 2, "object_ordering");
}

TEST(BadInput, ACyclicExtendsShowsTheChain) {
  test::Program program;
  program.dir().write("a.yaml", "extends: b.yaml\n");
  program.dir().write("b.yaml", "extends: a.yaml\n");
  expect_error(program.run("train a.yaml"), 2, "b.yaml");
}

TEST(BadInput, AWrongTypeNamesTheKey) {
  test::Program program;
  expect_error(train_with(program, "training: {max_steps: many}\n"), 2, "training.max_steps");
}

TEST(BadInput, AnUnknownCommandLineOptionIsAUsageError) {
  test::Program program;
  expect_error(program.run("train x.yaml --learning-rate 3"), 2, "--learning-rate");
}

TEST(BadInput, AHubIdNamesTheDownloadCommand) {
  test::Program program;
  expect_error(train_with(program, "model: {model: Qwen/Qwen3-VL-2B-Instruct}\n"), 2,
               "hf download");
}

// spec: vllm-10
TEST(BadInput, TheVllmBackendFailsFastWithTheMitigation) {
  test::Program program;
  expect_error(
      train_with(program, "custom: {extra: {rollout_matching: {rollout_backend: vllm}}}\n"), 4,
      "rollout_backend: hf");
}

TEST(BadInput, RanksWithoutALauncherAreRefused) {
  test::Program program;
  const std::string config = program.config();
  const auto run = [&](const std::string& command) {
    return test::run_command("cd " + program.dir().path() + " && WORLD_SIZE=4 RANK=0 " +
                             test::binary_path("bin/rematch") + command + config);
  };
  expect_error(run(" train "), 4, "MASTER_ADDR");
  expect_error(run(" eval "), 4, "MASTER_ADDR");
  expect_error(run(" rollout "), 4, "WORLD_SIZE");
}

TEST(BadInput, LaunchNamesTheProgramThatStartsRanks) {
  test::Program program;
  for (const char* arguments : {"launch", "launch --nproc 2 train run.yaml"})
    expect_error(program.run(arguments), 2,
                 "torchrun --no-python --nproc-per-node 2 rematch train");
}

TEST(BadInput, RecordsThatBreakTheContractNameLineAndFix) {
  expect_error(train_on("{broken"), 3, "it begins with `{broken`");
  expect_error(
      train_on(R"({"images": ["images/none.png"], "width": 64, "height": 64, "objects": []})"), 3,
      "none.png");
  expect_error(
      train_on(R"({"images": ["images/0.png"], "width": 64, "height": 96, "objects": []})"), 3,
      "64");
  expect_error(
      train_on(
          R"({"images": ["images/0.png"], "width": 64, "height": 64, "objects": [{"desc": "a", )"
          R"("bbox_2d": [1,2,3,4], "poly": [1,2,3,4,5,6]}]})"),
      3, "poly");
  expect_error(
      train_on(
          R"({"images": ["images/0.png"], "width": 64, "height": 64, "objects": [{"desc": "a", )"
          R"("bbox_2d": [1,2,3,1000]}]})"),
      3, "1000");
  expect_error(
      train_on(
          R"({"images": ["images/0.png"], "width": 64, "height": 64, "objects": [{"desc": "a", )"
          R"("bbox_2d": [1.5,2,3,4]}]})"),
      3, "1.5");
}

TEST(BadInput, ACorruptJpegIsADataError) {
  test::Program program;
  program.dir().write("broken.jpg",
                      "\xff\xd8\xff\xe0 this is not what follows a JPEG's first marker");
  program.dir().write("bad.jsonl",
                      R"({"images": ["broken.jpg"], "width": 64, "height": 64, "objects": []})"
                      "\n");
  expect_error(train_with(program, "custom: {train_jsonl: bad.jsonl}\n"), 3, "broken.jpg");
}

TEST(BadInput, DamagedWeightsAreNamed) {
  const std::string weights = read_file(test::Program::model() + "/model.safetensors");
  expect_error(train_with_model_file("model.safetensors", weights.substr(0, weights.size() / 2)), 3,
               "model.safetensors");
  expect_error(train_with_model_file("model.safetensors",
                                     std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)),
               3, "model.safetensors");
  expect_error(train_with_model_file("model.safetensors",
                                     replaced(weights, "\"model.language_model.norm.weight\"",
                                              "\"model.language_model.morn.weight\"")),
               3, "model.language_model.norm.weight");
}

TEST(BadInput, ATokenizerOrTemplateWeCannotReadIsNamed) {
  const std::string tokenizer = read_file(test::Program::model() + "/tokenizer.json");
  expect_error(
      train_with_model_file("tokenizer.json", replaced(tokenizer, "\"Split\"", "\"Metaspace\"")), 3,
      "Metaspace");
  expect_error(
      train_with_model_file("tokenizer.json", replaced(tokenizer, "<|coord_77|>", "<|c00rd_77|>")),
      3, "<|coord_77|>");
  expect_error(train_with_model_file("chat_template.jinja", "{% import 'x' as y %}"), 3, "import");
}

TEST(BadInput, AnUnwritableOutputDirectoryIsFoundBeforeTheModelLoads) {
  test::Program program;
  const test::ProcessResult result = train_with(program, "training: {output_dir: /proc/nowhere}\n");
  expect_error(result, 4, "/proc/nowhere");
  EXPECT_EQ(result.err.find("model "), std::string::npos);
}

TEST(BadInput, AFullDiskIsAnEnvironmentErrorAndKeepsThePreviousCheckpoint) {
  test::Program program;
  // A file-size limit stands in for a full disk: the weights of the second checkpoint no longer
  // fit.
  const std::string config = program.config("training: {max_steps: 1}\n");
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const std::string before = read_file(program.run_dir() + "/checkpoint-1/model.safetensors");
  const test::ProcessResult result =
      test::run_command("cd " + program.dir().path() + " && trap '' XFSZ; ulimit -f 250; " +
                        test::binary_path("bin/rematch") + " train " + config +
                        " --resume --set training.max_steps=2");
  expect_error(result, 4, "checkpoint-2");
  EXPECT_EQ(read_file(program.run_dir() + "/checkpoint-1/model.safetensors"), before);
  EXPECT_FALSE(std::filesystem::exists(program.run_dir() + "/checkpoint-2"));
}

}  // namespace rematch
