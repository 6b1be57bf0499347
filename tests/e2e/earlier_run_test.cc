// A run that starts, or resumes, in a directory where something else lies.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kEveryStep =
    "training: {max_steps: 3, save_strategy: steps, save_steps: 1, logging_steps: 1}\n";

bool exists(const test::Program& program, const std::string& name) {
  return fs::exists(program.run_dir() + "/" + name);
}

/// Steps in logging.jsonl, e.g. "1 2 3 ".
std::string logged_steps(const test::Program& program, const std::string& directory = "") {
  std::string steps;
  const std::string log = read_file(program.run_dir() + directory + "/logging.jsonl");
  const std::string key = "{\"step\": ";
  for (size_t at = log.find(key); at != std::string::npos; at = log.find(key, at + 1))
    steps += log.substr(at + key.size(), 1) + " ";
  return steps;
}

}  // namespace

TEST(EarlierRun, LinksThatLeadNowhereAreRepairedWhenItResumes) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  fs::remove_all(program.run_dir() + "/checkpoint-3");
  ASSERT_FALSE(exists(program, "last")) << "the link leads to what is gone";
  const test::ProcessResult resumed =
      program.run("train " + config +
                  " --resume --set training.save_strategy=no --set training.save_last_epoch=false");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(fs::read_symlink(program.run_dir() + "/last"), "checkpoint-2");
}

TEST(EarlierRun, StaysAsItIsAndANewRunTakesTheNextFreeName) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const std::string log = read_file(program.run_dir() + "/logging.jsonl");
  const test::ProcessResult again =
      program.run("train " + config + " --set training.save_total_limit=1");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("out/run holds a run, which stays as it is"));
  EXPECT_THAT(again.err, HasSubstr("next: rematch eval out/run-2\n"));
  for (const char* name : {"checkpoint-1", "checkpoint-2", "checkpoint-3"})
    EXPECT_TRUE(exists(program, name)) << name;
  EXPECT_EQ(read_file(program.run_dir() + "/logging.jsonl"), log);
  EXPECT_EQ(logged_steps(program, "-2"), "1 2 3 ");
  EXPECT_THAT(read_file(program.run_dir() + "-2/args.json"), HasSubstr("\"run-2\""));

  const test::ProcessResult checked = program.run("check " + config);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("out/run-3"));
  // Resumed from another run's checkpoint, it is a new run too.
  const test::ProcessResult forked =
      program.run("train " + config +
                  " --set training.resume_from_checkpoint=out/run-2/checkpoint-3 --set "
                  "training.max_steps=4");
  ASSERT_EQ(forked.exit_code, 0) << forked.err;
  EXPECT_EQ(logged_steps(program, "-3"), "4 ");
  const test::ProcessResult latest =
      program.run("train " + config + " --resume --set training.max_steps=4");
  ASSERT_EQ(latest.exit_code, 0) << latest.err;
  EXPECT_THAT(latest.err, HasSubstr("resuming from out/run/checkpoint-3"));
  EXPECT_THAT(latest.err, HasSubstr("--set training.run_name=run-3")) << "the later run";
  EXPECT_EQ(logged_steps(program), "1 2 3 4 ");
}

TEST(EarlierRun, WithoutANameTheOutputDirectoryGetsTheNumber) {
  test::Program program;
  const std::string train = "train " + program.config(kEveryStep) +
                            " --set training.run_name=null --set training.output_dir=out/alone/";
  ASSERT_EQ(program.run(train).exit_code, 0);
  ASSERT_EQ(program.run(train).exit_code, 0);
  EXPECT_TRUE(fs::exists(program.dir().file("out/alone-2/checkpoint-3")));
}

TEST(EarlierRun, DirectoriesThatTheRunDidNotSaveAreLeftAlone) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const std::string run = program.run_dir();
  fs::copy(run + "/checkpoint-1", run + "/checkpoint-99", fs::copy_options::recursive);
  program.dir().write("out/run/checkpoint-50/notes.txt", "mine");
  program.dir().write("out/run/checkpoint-4/notes.txt", "mine");

  const test::ProcessResult latest =
      program.run("train " + config +
                  " --set training.resume_from_checkpoint=latest --set training.max_steps=4 --set "
                  "training.save_total_limit=1");
  ASSERT_EQ(latest.exit_code, 0) << latest.err;
  EXPECT_THAT(latest.err, HasSubstr("resuming from out/run/checkpoint-3"));
  for (const char* name : {"checkpoint-99", "checkpoint-50/notes.txt", "checkpoint-4/config.json",
                           "abandoned-1/checkpoint-4/notes.txt"})
    EXPECT_TRUE(exists(program, name)) << name;
  EXPECT_FALSE(exists(program, "checkpoint-3")) << "rotated";

  const test::ProcessResult renamed = program.run(
      "train " + config + " --set training.resume_from_checkpoint=out/run/checkpoint-99");
  ASSERT_EQ(renamed.exit_code, 0) << renamed.err;
  EXPECT_THAT(renamed.err, HasSubstr("resuming after step 1 of 3"));
  EXPECT_TRUE(exists(program, "abandoned-2/checkpoint-4"));
  EXPECT_TRUE(exists(program, "checkpoint-50/notes.txt"));
}

TEST(EarlierRun, ItsCheckpointIsNoModelToStartFrom) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const test::ProcessResult result =
      program.run("train " + config + " --resume --set model.model=out/run/checkpoint-3");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("would replace the model that it starts from"));
  EXPECT_TRUE(exists(program, "checkpoint-3"));
}

TEST(EarlierRun, AResumeWithNothingLeftToDoChangesNeitherLogNorCheckpoints) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const test::ProcessResult done =
      program.run("train " + config +
                  " --set training.resume_from_checkpoint=out/run/checkpoint-2 --set "
                  "training.max_steps=2");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("resuming after step 2 of 2: nothing is left to do"));
  EXPECT_EQ(logged_steps(program), "1 2 3 ");
  EXPECT_TRUE(exists(program, "checkpoint-3") && !exists(program, "abandoned-1"));
  EXPECT_EQ(fs::read_symlink(program.run_dir() + "/last"), "checkpoint-3");
}

TEST(EarlierRun, ResumeIsShortForLatest) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  const test::ProcessResult first = program.run("train " + config + " --resume");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("no checkpoint to resume from: starting a new run"));
  const test::ProcessResult more =
      program.run("train " + config + " --resume --set training.max_steps=4");
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("resuming from out/run/checkpoint-3"));
  EXPECT_EQ(logged_steps(program), "1 2 3 4 ");
  EXPECT_EQ(fs::read_symlink(program.run_dir() + "/last"), "checkpoint-4");
  const test::ProcessResult twice = program.run(
      "train " + config + " --resume --set training.resume_from_checkpoint=out/run/checkpoint-2");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("the run would resume from two places"));
  const test::ProcessResult written = program.run(
      "train " + program.config("training: {resume_from_checkpoint: out/run/checkpoint-2}\n") +
      " --resume");
  EXPECT_EQ(written.exit_code, 2);
  EXPECT_THAT(written.err, HasSubstr("the run would resume from two places"));
}

// The link of a run moves between the starts of two ranks.
TEST(EarlierRun, AllRanksEvaluateTheCheckpointThatRank0Takes) {
  test::Program program;
  const std::string val = test::Program::golden("val.jsonl");
  for (const char* host : {"a", "b"}) {
    fs::create_directories(program.dir().file(std::string(host) + "/run"));
    for (const char* name : {"checkpoint-1", "checkpoint-2"})
      fs::copy(test::Program::model(), program.dir().file(std::string(host) + "/run/" + name));
  }
  fs::create_directory_symlink("checkpoint-1", program.dir().file("a/run/best"));
  fs::create_directory_symlink("checkpoint-2", program.dir().file("b/run/best"));
  const test::ProcessResult result = test::run_command(fmt::format(
      "cd {0} && export OMP_NUM_THREADS=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((20000 + $$ % 10000)); "
      "(cd b && RANK=1 LOCAL_RANK=1 {1} eval run {2} 2> other.err) & "
      "cd a && RANK=0 {1} eval run {2}; code=$?; wait; exit $code",
      program.dir().path(), test::binary_path("bin/rematch"), val));
  EXPECT_EQ(result.exit_code, 0) << result.err << read_file(program.dir().file("b/other.err"));
  EXPECT_TRUE(fs::exists(program.dir().file("a/output/run-checkpoint-1/eval_results.json")));
}

TEST(EarlierRun, LinksFollowARunThatGoesBack) {
  test::Program program;
  const std::string config = program.config(kEveryStep);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const test::ProcessResult back =
      program.run("train " + config +
                  " --set training.resume_from_checkpoint=out/run/checkpoint-1 --set "
                  "training.save_strategy=no --set training.max_steps=2");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(fs::read_symlink(program.run_dir() + "/last"), "checkpoint-2");
  EXPECT_TRUE(exists(program, "last/config.json") && exists(program, "abandoned-1/checkpoint-3"));
}

TEST(EarlierRun, SuggestedCommandsAreQuoted) {
  test::Program program;
  const test::ProcessResult result =
      program.run("train " + program.config(kEveryStep) + " --set 'training.run_name=a b'");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("next: rematch eval 'out/a b'\n"
                                    "      rematch report 'out/a b'\n"
                                    "      rematch predict 'out/a b' IMAGES"));
}

TEST(EarlierRun, NoFileOfARunReplacesItsData) {
  test::Program program;
  const std::string data = read_file(test::Program::golden("train.jsonl"));
  program.dir().write("out/run/args.json", data);
  const test::ProcessResult result =
      program.run("train " + program.config("custom: {train_jsonl: out/run/args.json}\n"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("would replace a file that is read"));
  EXPECT_EQ(read_file(program.run_dir() + "/args.json"), data);
}

}  // namespace rematch
