// `training.resume_optimizer_from`: a run that starts with the AdamW averages of an earlier one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using testing::HasSubstr;

/// Stage 2 on the last checkpoint of run `stage1`.
std::string stage_2(const std::string& training) {
  return "model: {model: out/stage1/checkpoint-2}\ntraining: {resume_optimizer_from: "
         "out/stage1/checkpoint-2, " +
         training + "}\n";
}

std::string weights(const test::Program& program, const std::string& checkpoint) {
  return read_file(program.dir().file("out/" + checkpoint + "/model.safetensors"));
}

}  // namespace

TEST(CarryOptimizer, StageTwoStartsWithTheAveragesOfStageOneAndResumesToTheBit) {
  test::Program program;
  const auto train = [&](const std::string& lines) {
    return program.run("train " + program.config(lines));
  };
  ASSERT_EQ(train("custom: {trainer_variant: sft}\ntraining: {run_name: stage1}\n").exit_code, 0);
  const test::ProcessResult carried =
      train(stage_2("run_name: carried, max_steps: 4, save_strategy: steps, save_steps: 2"));
  ASSERT_EQ(carried.exit_code, 0) << carried.err;
  EXPECT_THAT(carried.err,
              HasSubstr("AdamW starts with the averages of out/stage1/checkpoint-2 (step 2)"));
  ASSERT_EQ(
      train("model: {model: out/stage1/checkpoint-2}\ntraining: {run_name: cold, max_steps: 4}\n")
          .exit_code,
      0);
  EXPECT_NE(weights(program, "carried/checkpoint-4"), weights(program, "cold/checkpoint-4"));

  const std::string whole = weights(program, "carried/checkpoint-4");
  const test::ProcessResult resumed = train(
      stage_2("run_name: carried, max_steps: 4, resume_from_checkpoint: out/carried/checkpoint-2"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.err.find("AdamW starts"), std::string::npos)
      << "a resumed run has averages of its own";
  EXPECT_TRUE(weights(program, "carried/checkpoint-4") == whole);
}

TEST(CarryOptimizer, WhatCannotBeUsedIsAnErrorThatSaysWhy) {
  test::Program program;
  const auto train = [&](const std::string& lines) {
    return program.run("train " + program.config(lines));
  };
  ASSERT_EQ(train("custom: {trainer_variant: sft}\ntraining: {run_name: stage1}\n").exit_code, 0);
  ASSERT_EQ(
      train("custom: {trainer_variant: sft}\ntraining: {run_name: light, save_only_model: true}\n")
          .exit_code,
      0);
  const test::ProcessResult missing = train("training: {resume_optimizer_from: out/none}\n");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("out/none: no such directory"));
  const test::ProcessResult light =
      train("training: {resume_optimizer_from: out/light/checkpoint-2}\n");
  EXPECT_EQ(light.exit_code, 2);
  EXPECT_THAT(light.err, HasSubstr("save_only_model: false"));
  const test::ProcessResult adapter = train(
      "tuner: {train_type: lora}\ntraining: {resume_optimizer_from: out/stage1/checkpoint-2}\n");
  EXPECT_EQ(adapter.exit_code, 3) << adapter.err;
  EXPECT_THAT(adapter.err, HasSubstr("does not fit the parameters trained here"));
  EXPECT_THAT(adapter.err, HasSubstr("is not there"));
}

}  // namespace rematch
