// Outputs of commands never replace their inputs, and earlier outputs outlive a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs a command that must be refused, and must leave a file as it is.
void expect_kept(const test::Program& program, const std::string& arguments,
                 const std::string& file) {
  SCOPED_TRACE(arguments);
  const std::string path = program.dir().file(file), before = read_file(path);
  const test::ProcessResult result = program.run(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr("would replace"));
  EXPECT_EQ(read_file(path), before);
}

/// A data set of two images in `photos`, with its JSONL.
void write_data(const test::Program& program) {
  std::string lines;
  for (const char* name : {"0000_x.png", "x.png"}) {
    program.dir().write(std::string("photos/") + name,
                        read_file(test::Program::golden("images/0.png")));
    lines += std::string("{\"images\": [\"photos/") + name +
             "\"], \"width\": 64, \"height\": 64, \"objects\": []}\n";
  }
  program.dir().write("val.jsonl", lines);
}

}  // namespace

TEST(Outputs, RolloutReplacesNothingThatItReads) {
  test::Program program;
  write_data(program);
  const std::string config = program.config("custom: {val_jsonl: val.jsonl}\n");
  expect_kept(program, "rollout " + config + " --out val.jsonl", "val.jsonl");
  expect_kept(program, "rollout " + config + " --out ./run.yaml", "run.yaml");
  expect_kept(program, "rollout " + config + " --out photos/x.png", "photos/x.png");
}

TEST(Outputs, RolloutsLieInTheRunOfTheCheckpointThatAnswers) {
  test::Program program;
  fs::create_directories(program.dir().file("other"));
  fs::copy(test::Program::model(), program.dir().file("other/checkpoint-5"));
  program.dir().write("other/args.json", "{}");
  const test::ProcessResult result =
      program.run("rollout " + program.config() + " --set model.model=other/checkpoint-5");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("lines to other/rollouts.jsonl"));
  EXPECT_TRUE(fs::exists(program.dir().file("other/rollouts.jsonl")));
  EXPECT_FALSE(fs::exists(program.dir().file("out/run/rollouts.jsonl")));
}

TEST(Outputs, EarlierRolloutsOutliveWhatFails) {
  test::Program program;
  const std::string config = program.config();
  for (const char* path : {"out/run/rollouts.jsonl", "mine.jsonl"})
    program.dir().write(path, "earlier");
  EXPECT_EQ(program.run("rollout " + config + " --set model.model=gone").exit_code, 4);
  EXPECT_EQ(program.run("rollout " + config + " --set custom.val_jsonl=gone.jsonl --out mine.jsonl")
                .exit_code,
            4);
  for (const char* path : {"out/run/rollouts.jsonl", "mine.jsonl"})
    EXPECT_EQ(read_file(program.dir().file(path)), "earlier") << path;
  ASSERT_EQ(program.run("rollout " + config + " --split val --out mine.jsonl").exit_code, 0);
  EXPECT_NE(read_file(program.dir().file("mine.jsonl")), "earlier");
  ASSERT_EQ(program.run("rollout " + config + " --split val --out=new.jsonl").exit_code, 0);
  EXPECT_TRUE(fs::exists(program.dir().file("new.jsonl")));
}

TEST(Outputs, DrawingsDoNotLieAmongTheImages) {
  test::Program program;
  write_data(program);
  const std::string photo = program.dir().file("photos/0000_x.png"), before = read_file(photo);
  for (const char* images : {"photos/x.png photos/0000_x.png", "photos"}) {
    const test::ProcessResult result = program.run("predict " + test::Program::model() + " " +
                                                   images + " --draw photos/. --max-new-tokens 4");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("the drawings would lie among the images"));
  }
  EXPECT_EQ(read_file(photo), before);
  // A drawing that is an image of another directory, by a link.
  fs::create_directory(program.dir().file("drawn"));
  fs::create_hard_link(photo, program.dir().file("drawn/0000_x.png"));
  expect_kept(program, "predict " + test::Program::model() + " photos/x.png photos --draw drawn",
              "photos/0000_x.png");
}

TEST(Outputs, EvaluationsOfTwoRunsLieSideBySide) {
  test::Program program;
  const std::string config = program.config("custom: {val_sample_limit: 1}\n");
  for (const char* run : {"a", "b", "other/a"}) {
    fs::create_directories(program.dir().file(run));
    fs::copy(test::Program::model(), program.dir().file(std::string(run) + "/checkpoint-7"),
             fs::copy_options::recursive);
  }
  const auto eval = [&](const std::string& model) {
    return program.run("eval " + config + " --set model.model=" + model);
  };
  for (const char* run : {"a", "b"}) {
    const test::ProcessResult result = eval(std::string(run) + "/checkpoint-7");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("is replaced")));
  }
  for (const char* name : {"a-checkpoint-7.json", "b-checkpoint-7.samples.jsonl"})
    EXPECT_TRUE(fs::exists(program.run_dir() + "/eval/" + name)) << name;
  EXPECT_THAT(eval("./other/../b/checkpoint-7").err, Not(HasSubstr("is replaced")));
  const test::ProcessResult replaced = eval("other/a/checkpoint-7");
  EXPECT_THAT(replaced.err, HasSubstr("held the evaluation of model \"a/checkpoint-7\""));
}

TEST(Outputs, NamesThatTurnALineAreEscaped) {
  test::Program program;
  const std::string turn = "\u202E", val = test::Program::golden("val.jsonl");
  for (const std::string& command :
       {"init " + test::Program::model() + " " + val + " --out " + turn + ".yaml",
        "check " + program.config() + " --json --set training.run_name=" + turn,
        "data boxes " + val + " --out " + turn + ".jsonl"}) {
    const test::ProcessResult result = program.run(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("\\u202e"));
    EXPECT_THAT(result.out + result.err, Not(HasSubstr(turn)));
  }
  const test::ProcessResult json =
      program.run("check " + program.config() + " --json --set training.run_name=a\x7f");
  EXPECT_EQ(parse_json(json.out, "check")["found"]["run directory"], "out/a\x7f");
}

TEST(Outputs, ReportAndCompareReplaceNothingThatTheyRead) {
  test::Program program;
  ASSERT_EQ(program.run("eval " + program.config("custom: {val_sample_limit: 1}\n")).exit_code, 0);
  program.dir().write("out/run/logging.jsonl", "{\"step\": 1, \"loss\": 2}\n");
  const std::string result = "out/run/eval/tiny_tied.json";
  const std::string log = "out/run/logging.jsonl";
  for (const auto& [file, link] : {std::pair{log, "a.html"}, {result, "a.png"}, {result, "a.md"}})
    fs::create_hard_link(program.dir().file(file), program.dir().file(link));
  expect_kept(program, "report out/run --out a.html", log);
  expect_kept(program, "report out/run --sheet a.png", result);
  expect_kept(program, "compare out/run " + result + " --out a.md", result);
  EXPECT_EQ(program.run("report out/run --out out/run/report.html").exit_code, 0);
  EXPECT_EQ(program.run("report out/run --out out/run/report.html").exit_code, 0);
}

TEST(Outputs, AFileOnStandardOutputStaysFreeOfOtherText) {
  test::Program program;
  const std::string records = test::Program::golden("train.jsonl");
  const std::vector<std::pair<std::string, std::string>> commands{
      {"data show " + records + " --count 1 --out ", "sheet"},
      {"data check " + records + " --fix ", "fixed.jsonl"},
      {"data boxes " + records + " --out ", "boxes.jsonl"}};
  for (const auto& [command, name] : commands) {
    ASSERT_EQ(program.run(command + name).exit_code, 0) << command;
    const test::ProcessResult piped = program.script("$R " + command + "/dev/stdout | cat > piped");
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    const std::string written = read_file(program.dir().file("piped"));
    EXPECT_EQ(written.front(), read_file(program.dir().file(name)).front());
    EXPECT_THAT(written, Not(HasSubstr("wrote"))) << command;
    EXPECT_NE(piped.err.find("wrote /dev/stdout"), std::string::npos) << piped.err;
  }
}

TEST(Outputs, ImagesWithNamesThatAreNotUtf8AreReported) {
  test::Program program;
  write_data(program);
  fs::rename(program.dir().file("photos/x.png"), program.dir().file("photos/x\xE9.png"));
  const std::string predict = "predict " + test::Program::model() + " photos --max-new-tokens 4";
  const test::ProcessResult lines = program.run(predict);
  EXPECT_EQ(lines.exit_code, 3) << lines.err;
  EXPECT_THAT(lines.err, HasSubstr("its name is not UTF-8"));
  const size_t second = lines.out.find('\n') + 1;
  EXPECT_EQ(parse_json(lines.out.substr(second), "out")["status"], "unreadable");
  EXPECT_EQ(program.run(predict + " --format coco --out found.json").exit_code, 3);
  EXPECT_EQ(read_json_file(program.dir().file("found.json"))["images"].size(), 1u);
}

TEST(Outputs, LinksThatLeadNowhereDoNotEndTheOtherAnswers) {
  test::Program program;
  write_data(program);
  fs::create_symlink("loop.png", program.dir().file("photos/loop.png"));
  fs::create_symlink("loop", program.dir().file("photos/loop"));
  fs::create_symlink("gone.jpg", program.dir().file("photos/link.jpg"));
  const test::ProcessResult result =
      program.run("predict " + test::Program::model() + " photos --max-new-tokens 4");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 4) << result.out;
  EXPECT_THAT(result.err, HasSubstr("photos/link.jpg"));
  EXPECT_THAT(result.err, HasSubstr("photos/loop.png"));
}

TEST(Outputs, StagesDoNotWriteAmongTheFilesOfTheModel) {
  const std::string model = test::Program::model();
  const test::ProcessResult result =
      test::Program().run_stage("logits --model " + model + " --out " + model + "/.", "");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("would replace files of the model"));
}

TEST(Outputs, AMistypedCheckpointIsTheOnlyComplaint) {
  test::Program program;
  const test::ProcessResult result =
      program.run("predict out/chekpoint-2 " + test::Program::golden("images/0.png"));
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, Not(HasSubstr("warning")));
}

// CLI11 would take --dtype=float32 for the directory.
TEST(Outputs, AnEmptyValueIsNotTheNextOption) {
  test::Program program;
  const test::ProcessResult result =
      program.run("merge " + test::source_path("tests/golden/lora/lora") + " --model " +
                  test::Program::model() + " --out= --dtype=float32");
  EXPECT_NE(result.exit_code, 0) << result.err;
  EXPECT_FALSE(std::filesystem::exists(program.dir().file("--dtype=float32")));
}

}  // namespace rematch
