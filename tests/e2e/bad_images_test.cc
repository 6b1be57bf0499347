// Images that become unusable while a run trains on them.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The golden training set with its images in the program's directory, where a test may damage
/// them; its configuration.
std::string own_images(const test::Program& program, const std::string& lines) {
  fs::copy(test::Program::golden("images"), program.dir().file("images"));
  fs::copy(test::Program::golden("train.jsonl"), program.dir().file("train.jsonl"));
  return program.config(
      "custom: {train_jsonl: train.jsonl, extra: {rollout_matching: {max_new_tokens: 4}}}\n" +
      lines);
}

}  // namespace

TEST(BadImages, StopTheRunWithItsStateSavedAndAdviceThatWorks) {
  for (const char* variant : {"rollout_matching_sft", "sft"}) {
    test::Program program;
    const std::string config =
        own_images(program,
                   "training: {max_steps: 400, save_strategy: \"no\", save_last_epoch: false}\n") +
        " --set custom.trainer_variant=" + variant;
    const test::ProcessResult stopped =
        program.script("$R train " + config +
                       " & pid=$!; steps 2; for f in images/*; do head -c 100 $f > x; cat x > "
                       "$f; done; wait $pid");
    EXPECT_EQ(stopped.exit_code, 3) << variant << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("train.jsonl:")) << "the record is named";
    EXPECT_THAT(stopped.err, HasSubstr("saved out/run/checkpoint-")) << variant;
    EXPECT_THAT(stopped.err, HasSubstr("or add --resume --set data.on_bad_sample=skip")) << variant;
    const auto first =
        test::run_command("ls -d " + program.run_dir() + "/checkpoint-* | sed 's/.*-//'");
    const int step = std::stoi(first.out);
    EXPECT_GE(step, 2);
    // All but one come back; resuming skips that one.
    ASSERT_EQ(program
                  .script("cp -f " + test::Program::golden("images") +
                          "/* images/; echo broken > images/0.png")
                  .exit_code,
              0);
    const test::ProcessResult resumed =
        program.run(fmt::format("train {} --set training.resume_from_checkpoint=latest --set "
                                "data.on_bad_sample=skip --set training.max_steps={}",
                                config, step + 8));
    EXPECT_EQ(resumed.exit_code, 0) << variant << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("images cannot be used and are skipped")) << variant;
    EXPECT_THAT(resumed.err, HasSubstr("warning: skipped ")) << variant;
    EXPECT_THAT(read_file(program.run_dir() + "/skipped.jsonl"), HasSubstr("images/0.png"))
        << variant;
    EXPECT_THAT(read_file(program.run_dir() + "/logging.jsonl"), HasSubstr("data/skipped_samples"))
        << variant;
  }
}

TEST(BadImages, AreSkippedAfterTheirRolloutWhenTheRunResumes) {
  // A window of four of the eight samples, rolled out once for all steps; and a window of stage 1,
  // whose images are first read by the step.
  for (const char* more : {" --set custom.extra.rollout_matching.rollout_buffer.enabled=true --set "
                           "custom.extra.rollout_matching.rollout_buffer.m_steps=400",
                           " --set custom.trainer_variant=sft"}) {
    test::Program program;
    const std::string config =
        own_images(program,
                   "training: {max_steps: 400, save_strategy: \"no\", save_last_epoch: false, "
                   "lr_scheduler_type: constant}\n") +
        more;
    const test::ProcessResult ended =
        program.script("$R train " + config + " & pid=$!; steps 2; kill -TERM $pid; wait $pid");
    ASSERT_EQ(ended.exit_code, 130) << ended.err;
    ASSERT_EQ(
        program
            .script(
                "for i in 0 1 2 3; do head -c 100 images/$i.png > x; cat x > images/$i.png; done")
            .exit_code,
        0);
    const std::string resume = "train " + config + " --set training.resume_from_checkpoint=latest";
    const test::ProcessResult stopped = program.run(resume);
    EXPECT_EQ(stopped.exit_code, 3) << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("or add --resume --set data.on_bad_sample=skip")) << more;
    const int step =
        std::stoi(test::run_command("ls -d " + program.run_dir() +
                                    "/checkpoint-* | sed 's/.*-//' | sort -n | tail -1")
                      .out);
    const test::ProcessResult skipped = program.run(fmt::format(
        "{} --set data.on_bad_sample=skip --set training.max_steps={}", resume, step + 2));
    EXPECT_EQ(skipped.exit_code, 0) << more << skipped.err;
    EXPECT_THAT(skipped.err, HasSubstr("warning: skipped ")) << more;
    EXPECT_THAT(read_file(program.run_dir() + "/skipped.jsonl"), HasSubstr("images/")) << more;
  }
}

TEST(BadImages, SkippingStopsWithoutAnyUsableImage) {
  test::Program program;
  const std::string config = own_images(program, "data: {on_bad_sample: skip}\n");
  for (const auto& entry : fs::directory_iterator(program.dir().file("images")))
    fs::resize_file(entry.path(), 10);
  const test::ProcessResult result = program.run("train " + config);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no sample of a window can be used"));
}

}  // namespace rematch
