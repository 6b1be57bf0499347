#include "engine/ranks/world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

const char* const kVariables[] = {"WORLD_SIZE",          "RANK",
                                  "LOCAL_RANK",          "LOCAL_WORLD_SIZE",
                                  "MASTER_ADDR",         "MASTER_PORT",
                                  "SLURM_PROCID",        "SLURM_STEP_NUM_TASKS",
                                  "SLURM_LOCALID",       "SLURM_JOB_ID",
                                  "SLURM_STEP_ID",       "SLURM_STEP_NODELIST",
                                  "SLURM_RESTART_COUNT", "SLURM_STEP_TASKS_PER_NODE",
                                  "SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK",
                                  "SLURM_GPU_BIND",      "TORCHELASTIC_RESTART_COUNT",
                                  "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"};

World world_of(const std::map<std::string, std::string>& variables) {
  for (const char* name : kVariables) ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  struct Cleared {
    ~Cleared() {
      for (const char* name : kVariables) ::unsetenv(name);
    }
  } cleared;
  return world_from_environment();
}

std::string error_of(const std::map<std::string, std::string>& variables) {
  const UserError error = test::catch_user_error([&] { world_of(variables); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  return error.what();
}

}  // namespace

TEST(World, IsAloneWithoutALauncher) {
  EXPECT_EQ(world_of({}), World{});
  EXPECT_EQ(world_of({{"WORLD_SIZE", "1"}, {"RANK", "0"}}), World{});
  EXPECT_EQ(world_of({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}), World{})
      << "a batch script is not a step";
}

TEST(World, ReadsTorchrunsVariables) {
  const World world = world_of({{"WORLD_SIZE", "8"},
                                {"RANK", "5"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "a"},
                                {"MASTER_PORT", "29400"},
                                {"TORCHELASTIC_RESTART_COUNT", "2"},
                                {"TORCHELASTIC_RUN_ID", "job"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(world, (World{8, 5, 4, 1, 2, "job", "a", 29400, true}));
}

TEST(World, ReadsASlurmStep) {
  const World world = world_of({{"SLURM_STEP_NUM_TASKS", "4"},
                                {"SLURM_PROCID", "3"},
                                {"SLURM_LOCALID", "1"},
                                {"SLURM_JOB_ID", "123456"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NODELIST", "gpu[03-04]"},
                                {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}});
  EXPECT_EQ(world, (World{4, 3, 2, 1, 0, "123456.0", "gpu03", 23456, false}));
}

TEST(World, SeesWhetherSlurmGivesEveryTaskItsOwnGpu) {
  std::map<std::string, std::string> step{{"SLURM_STEP_NUM_TASKS", "2"},
                                          {"SLURM_PROCID", "1"},
                                          {"SLURM_LOCALID", "1"},
                                          {"SLURM_JOB_ID", "1"},
                                          {"SLURM_STEP_NODELIST", "gpu1"}};
  EXPECT_FALSE(world_of(step).sees_own_gpu);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"SLURM_GPUS_PER_TASK", "1"},
                                          {"SLURM_TRES_PER_TASK", "cpu=4,gres/gpu:1"},
                                          {"SLURM_GPU_BIND", "single:1"}}) {
    auto with = step;
    with[name] = value;
    EXPECT_TRUE(world_of(with).sees_own_gpu) << name;
  }
  step["SLURM_GPUS_PER_TASK"] = "2";
  EXPECT_FALSE(world_of(step).sees_own_gpu);
}

TEST(World, FindsTheFirstHostOfANodeList) {
  EXPECT_EQ(first_host("gpu[03-05,7],login"), "gpu03");
  EXPECT_EQ(first_host("n[1,4]"), "n1");
  EXPECT_EQ(first_host("login,gpu[1-2]"), "login");
  EXPECT_EQ(first_host("one"), "one");
  EXPECT_EQ(first_host(""), "");
}

TEST(World, RefusesContradictionsByTheVariablesName) {
  const std::map<std::string, std::string> good{
      {"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  EXPECT_EQ(world_of(good).rank, 1);
  const std::pair<const char*, const char*> bad[] = {
      {"WORLD_SIZE", "two"}, {"WORLD_SIZE", "0"},      {"RANK", "2"},
      {"RANK", ""},          {"RANK", "-1"},           {"MASTER_ADDR", ""},
      {"MASTER_PORT", ""},   {"MASTER_PORT", "65536"}, {"LOCAL_WORLD_SIZE", "3"}};
  for (const auto& [name, value] : bad) {
    auto variables = good;
    variables[name] = value;
    EXPECT_NE(error_of(variables).find(name), std::string::npos) << name << "=" << value;
  }
  auto variables = good;
  variables["LOCAL_RANK"] = "1";
  variables["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_NE(error_of(variables).find("LOCAL_RANK"), std::string::npos);
}

}  // namespace rematch
