// `training.zero_stage: 3`: ranks share the frozen weights, with the bits of whole ones.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A run of stage 1 that measures its loss on the validation records.
std::string lines_of(const std::string& tuner, const std::string& checkpointing) {
  return "custom: {trainer_variant: sft, extra: {rollout_matching: null}}\n"
         "tuner: {train_type: lora, lora_rank: 3, lora_alpha: 6, lora_dropout: 0.1, " +
         tuner + "}\ntraining: {max_steps: 5, gradient_checkpointing: " + checkpointing +
         ", eval_strategy: steps, eval_steps: 3, per_device_eval_batch_size: 1, save_strategy: "
         "steps, save_steps: 3}\n";
}

struct World {
  int num_ranks = 1;
  int accumulation = 4;
  int zero_stage = 3;
  bool exact_ranks = true;
};

/// @param before  words before the program, on every rank
test::ProcessResult run(const test::Program& program, const World& world,
                        const std::string& arguments, const std::string& before = "") {
  const std::string start =
      world.num_ranks == 1 ? std::string()
                           : fmt::format("{} --no-python --nproc-per-node {} ",
                                         test::source_path(".venv/bin/torchrun"), world.num_ranks);
  return test::run_command(
      fmt::format("cd {} && export OMP_NUM_THREADS=1 && exec {}{} {} train {} --set "
                  "training.gradient_accumulation_steps={} --set training.zero_stage={} --set "
                  "training.exact_ranks={}",
                  program.dir().path(), start, before, test::binary_path("bin/rematch"), arguments,
                  world.accumulation, world.zero_stage, world.exact_ranks));
}

struct Outcome {
  std::string weights, log;
};

Outcome outcome_of(const test::Program& program) {
  return {read_file(program.run_dir() + "/checkpoint-5/adapter_model.safetensors"),
          program.log_without_times()};
}

Outcome train(const World& world, const std::string& lines) {
  const test::Program program;
  const test::ProcessResult result = run(program, world, program.config(lines));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return outcome_of(program);
}

void expect_the_same(const Outcome& found, const Outcome& expected) {
  EXPECT_TRUE(found.weights == expected.weights) << "other weights";
  EXPECT_EQ(found.log, expected.log);
}

}  // namespace

TEST(Shards, TrainWithTheBitsOfOneProcess) {
  const std::string lora = lines_of("target_modules: [all-linear]", "false");
  expect_the_same(train({4, 1}, lora), train({1, 4, 0}, lora));
  const std::string dora = lines_of("use_dora: true", "true");
  expect_the_same(train({2, 2}, dora), train({1, 4, 0}, dora));
}

TEST(Shards, ChangeNoBitWhereGradientsAreSentOncePerStep) {
  const std::string lines = lines_of("use_dora: false", "selective");
  expect_the_same(train({2, 2, 3, false}, lines), train({2, 2, 0, false}, lines));
}

TEST(Shards, ARunContinuesOnAnotherNumberOfRanks) {
  const std::string lines = lines_of("use_dora: true", "false");
  const Outcome undisturbed = train({1, 4, 0}, lines);
  const test::Program program;
  const std::string config = program.config(lines);
  ASSERT_EQ(run(program, {2, 2}, config).exit_code, 0);
  for (const World& world : {World{4, 1}, World{1, 4}}) {
    fs::remove_all(program.run_dir() + "/checkpoint-5");
    const test::ProcessResult resumed =
        run(program, world, config + " --set training.resume_from_checkpoint=latest");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    expect_the_same(outcome_of(program), undisturbed);
  }
}

// Rank 1 dies when it starts to send a part in a step; the others are in that gather.
TEST(Shards, ARankThatIsKilledInAGatherEndsAllAndIsNamed) {
  const test::Program program;
  const std::string config = program.config(lines_of("use_dora: false", "true"));
  const test::ProcessResult result =
      run(program, {2, 2}, config,
          "env LD_PRELOAD=" + test::binary_path("tests/librematch_rank_fault_shim.so") +
              " PLANT_RANK=1 PLANT_PHASE=gather PLANT_FAULT=kill PLANT_AT=40");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("planted: kill in gather"));
  EXPECT_THAT(result.err, HasSubstr("failed (exitcode: -9) local_rank: 1"));
  EXPECT_THAT(result.err, HasSubstr("what:  rank 1 on "));
}

TEST(Shards, WhatNeedsWholeWeightsIsRefusedByName) {
  const test::Program program;
  const auto refusal = [&](const std::string& lines) {
    const test::ProcessResult result = program.run("check " + program.config(lines));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  const std::string stage_1 = "custom: {trainer_variant: sft, extra: {rollout_matching: null}}\n",
                    stage = "training: {zero_stage: 3}\n", lora = "tuner: {train_type: lora}\n";
  EXPECT_THAT(refusal(stage_1 + stage), HasSubstr("ZeRO stage 3 needs an adapter"));
  EXPECT_THAT(refusal(stage_1 + "deepspeed: zero3\n"), HasSubstr("ZeRO stage 3 needs an adapter"));
  EXPECT_THAT(refusal(lora + stage), HasSubstr("ZeRO stage 3 has rollouts with `vllm` only"));
  EXPECT_THAT(refusal("custom: {trainer_variant: sft}\n" + lora +
                      "training: {zero_stage: 3, eval_strategy: steps, eval_steps: 1}\n"),
              HasSubstr("evaluations answer"));
  EXPECT_THAT(refusal(stage_1 + lora + stage + "model: {model: " + test::Program::model() +
                      ", load_in_4bit: true}\n"),
              HasSubstr("ZeRO stage 3 does not shard weights in 4 bits"));
  const std::string fits = stage_1 + lora + stage;
  EXPECT_EQ(program.run("check " + program.config(fits)).exit_code, 0);
  const std::string layer = "model.language_model.layers.0.mlp.down_proj";
  const test::ProcessResult saved = run(program, {2, 2},
                                        program.config(stage_1 + stage +
                                                       "tuner: {train_type: lora, "
                                                       "modules_to_save: [" +
                                                       layer + "]}\n"));
  EXPECT_NE(saved.exit_code, 0);
  EXPECT_THAT(saved.err, HasSubstr("cannot be trained in full: ranks share it"));
  const test::ProcessResult order =
      run(program, {2, 2},
          program.config("custom: {trainer_variant: sft, object_ordering: own, extra: "
                         "{rollout_matching: {rollout_backend: native}}}\n" +
                         lora));
  EXPECT_NE(order.exit_code, 0);
  EXPECT_THAT(order.err, HasSubstr("cannot learn the model's own order"));
}

}  // namespace rematch
