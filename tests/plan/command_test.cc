#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "plan/models.h"
#include "program/cli/cmd_plan.h"
#include "program/config/config.h"
#include "support/capture.h"
#include "tools/plan/plan.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

// A configuration for a public model of which only config.json is there.
struct PlannedRun {
  test::TempDir dir;
  std::string config;

  explicit PlannedRun(const test::PublicModel& model) {
    dir.write("config.json", test::config_of(model));
    config =
        dir.write("run.yaml",
                  "model: {model: " + dir.path() + "}\nglobal_max_length: 4096\n" +
                      "training: {output_dir: out, run_name: run, gradient_checkpointing: true}\n" +
                      "custom: {train_jsonl: train.jsonl}\n");
  }
};

std::string check_memory(const PlanArguments& arguments) {
  const Settings settings = load_config(arguments.path).settings;
  const PlanRequest request = plan_request_of(settings, arguments);
  return check_memory(request, make_plan(request), arguments);
}

Json plan_of(const PlanArguments& arguments) {
  std::ostringstream out;
  EXPECT_EQ(run_plan(arguments, out), 0);
  return parse_json(out.str(), "plan");
}

TEST(PlanCommand, NeedsNothingButConfigJson) {
  const PlannedRun run(test::kPublicModels[1]);
  const Json json = plan_of({.path = run.dir.path(), .gpu_memory_gib = 80, .json = true});
  EXPECT_EQ(json["parameters"]["total"], 4437815808);
  EXPECT_EQ(json["device"]["kind"], "gpu");
  EXPECT_EQ(plan_of({.path = run.dir.file("config.json"), .gpu_memory_gib = 80, .json = true}),
            json);
}

TEST(PlanCommand, FollowsAConfigurationAndItsOverrides) {
  const PlannedRun run(test::kPublicModels[1]);
  const Json full = plan_of({.path = run.config, .gpu_memory_gib = 80, .json = true});
  const Json lora = plan_of({.path = run.config,
                             .overrides = {"tuner.train_type=lora"},
                             .gpu_memory_gib = 80,
                             .json = true});
  EXPECT_EQ(full["row"]["tokens"], 4096);
  EXPECT_EQ(full["parameters"]["trainable"], 4437815808);
  EXPECT_LT(lora["parameters"]["trainable"], 40'000'000);
  EXPECT_EQ(full["phases"].size(), 4u);  // stage 1 has no rollouts
}

TEST(PlanCommand, WarnsAsCheckDoesOfARateThatTeachesNoAdapter) {
  const PlannedRun run(test::kPublicModels[1]);
  std::ostringstream out;
  run_plan({.path = run.config,
            .overrides = {"tuner.train_type=lora", "training.learning_rate=1e-5"},
            .gpu_memory_gib = 80},
           out);
  EXPECT_THAT(out.str(), HasSubstr("warning: `training.learning_rate: 1e-05` is a rate for full"));
}

TEST(PlanCommand, WithoutAGpuItPlansForThisMachine) {
  const PlannedRun run(test::kPublicModels[0]);
  const Json json = plan_of({.path = run.config, .json = true});
  EXPECT_EQ(json["device"]["kind"], "cpu");
  EXPECT_GT(json["device"]["memory_bytes"], 0);
}

TEST(PlanCommand, ADirectoryWithoutConfigJsonIsRefused) {
  const test::TempDir dir;
  std::ostringstream out;
  const UserError error = test::catch_user_error([&] { run_plan({.path = dir.path()}, out); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_THAT(error.what(), HasSubstr("has no config.json"));
}

TEST(PlanCommand, AModelTakesSettingsAsAConfigurationDoes) {
  const PlannedRun run(test::kPublicModels[1]);
  const Json json = plan_of({.path = run.dir.path(),
                             .overrides = {"tuner.train_type=lora", "global_max_length=1024"},
                             .gpu_memory_gib = 80,
                             .json = true});
  EXPECT_EQ(json["row"]["tokens"], 1024);
  EXPECT_LT(json["parameters"]["trainable"], 40'000'000);
}

TEST(CheckMemory, RefusesAPlanThatExceedsTheRequestedGpu) {
  const PlannedRun run(test::kPublicModels[2]);
  const UserError error =
      test::catch_user_error([&] { check_memory({.path = run.config, .gpu_memory_gib = 80}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_THAT(error.what(), HasSubstr("147.0 GiB of 80.0 GiB"));
}

TEST(CheckMemory, WarnsWhereOnlyTheEstimateIsTooLarge) {
  const PlannedRun run(test::kPublicModels[0]);
  EXPECT_THAT(check_memory({.path = run.config, .gpu_memory_gib = 37}), HasSubstr("rematch plan"));
  EXPECT_EQ(check_memory({.path = run.config, .gpu_memory_gib = 80}), "");
}

TEST(CheckMemory, NeverRefusesForThisMachine) {
  const PlannedRun run(test::kPublicModels[3]);
  EXPECT_NO_THROW(check_memory({.path = run.config}));
}

}  // namespace
}  // namespace rematch
