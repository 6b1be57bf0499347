// A run that is made to harm its model: the demonstration's checkpoint on the scenes it knows,
// `append`, and a learning rate far too high.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using testing::HasSubstr;
using testing::Not;

class Health : public testing::Test {
 protected:
  void SetUp() override {
    const std::string python = test::source_path(".venv/bin/python");
    if (!std::filesystem::exists(python)) GTEST_SKIP() << "no .venv/bin/python (run scripts/setup)";
    const auto made = test::run_command(
        python + " " + test::source_path("tests/shapes/make_scenes.py") + " " +
        program_.dir().file("scenes") + " --split simple --num-train 24 --num-val 48 --seed 3");
    if (made.exit_code != 0) GTEST_SKIP() << "no scenes: " << made.err;
  }

  /// @param training  further keys of `training`
  test::ProcessResult train(const std::string& training) {
    const std::string config = program_.dir().write(
        "harm.yaml", "extends: " + test::source_path("tests/shapes/common.yaml") +
                         "\nmodel: {model: " + test::source_path("tests/shapes/model") +
                         "}\n"
                         "custom:\n  trainer_variant: rollout_matching_sft\n  train_jsonl: "
                         "scenes/train.jsonl\n  val_jsonl: scenes/val.jsonl\n"
                         "  extra: {rollout_matching: {target_policy: append}}\n"
                         "training: {output_dir: out, run_name: run, max_steps: 3, "
                         "lr_scheduler_type: constant, effective_batch_size: 6, "
                         "per_device_train_batch_size: 6, eval_strategy: steps, eval_steps: 1, "
                         "logging_steps: 1, report_to: none, " +
                         training + "}\n");
    return program_.run("train " + config);
  }

  /// Evaluations in logging.jsonl, by step.
  std::map<int, Json> evaluations() const {
    std::istringstream lines(read_file(program_.run_dir() + "/logging.jsonl"));
    std::map<int, Json> found;
    for (std::string line; std::getline(lines, line);) {
      Json logged = parse_json(line, "logging.jsonl");
      const int step = logged.at("step").get<int>();
      if (logged.contains("eval_rollout_f1")) found[step] = std::move(logged);
    }
    return found;
  }

  test::Program program_;
};

}  // namespace

TEST_F(Health, ARunThatHarmsItsModelIsCalledSoAndStops) {
  const test::ProcessResult result = train("learning_rate: 0.05, stop_on_harm: true");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("evaluation after step 0"));
  EXPECT_THAT(result.err, HasSubstr("health: worse than at the start: malformed"));
  EXPECT_THAT(
      result.err,
      HasSubstr("  pred_per_gt: most of what is missing is in the answers that are not JSON"));
  EXPECT_THAT(result.err, HasSubstr("stopped after step 1 of 3 (training.stop_on_harm)\n"));
  EXPECT_THAT(result.err, HasSubstr("no evaluation was better"));
  EXPECT_THAT(result.err, Not(HasSubstr("of the last evaluation"))) << "it was said just before";
  const std::map<int, Json> found = evaluations();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found.at(0).contains("health/worse")) << "the start is the reference";
  EXPECT_GE(found.at(1).at("health/worse").get<double>(), 1);
  EXPECT_LT(found.at(1).at("health/precision").get<double>(), -0.1);
  const Json state = parse_json(read_file(program_.run_dir() + "/checkpoint-1/trainer_state.json"),
                                "trainer_state.json");
  EXPECT_EQ(state["best_global_step"], 0);
  EXPECT_TRUE(state["best_model_checkpoint"].is_null());
}

TEST_F(Health, ARunThatLearnsNothingHarmsNothingAndIsComparedWithItsFirstEvaluation) {
  const test::ProcessResult result = train("learning_rate: 0");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("evaluation after step 0")));
  EXPECT_THAT(result.err, Not(HasSubstr("health: worse")));
  EXPECT_THAT(result.err, HasSubstr("health: nothing in the answers is worse than after step 1\n"
                                    "  training.eval_on_start: true compares with the start"));
  const std::map<int, Json> found = evaluations();
  EXPECT_FALSE(found.at(1).contains("health/worse"));
  for (const int step : {2, 3}) EXPECT_EQ(found.at(step).at("health/worse"), 0);
}

TEST_F(Health, WithoutAStopTheRunGoesOn) {
  const test::ProcessResult result = train("learning_rate: 0.05, eval_on_start: true");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("health: worse than at the start: malformed"));
  EXPECT_THAT(result.err, Not(HasSubstr("stopped after")));
  EXPECT_EQ(evaluations().rbegin()->first, 3);
}

}  // namespace rematch
