// The ZeRO stage of users' files: ms-swift's names, DeepSpeed's own configurations, and both in a
// section with `enabled`.
#include "config/support.h"

namespace rematch {
namespace {

int stage_of(const std::string& assignment) {
  return test::load_set({assignment}).settings.optim.zero_stage;
}

}  // namespace

TEST(Deepspeed, ItsZeroStageSetsTrainingZeroStage) {
  for (const auto& [assignment, stage] : std::vector<std::pair<std::string, int>>{
           {"deepspeed=zero0", 0},
           {"deepspeed=zero1", 1},
           {"training.deepspeed=zero2", 2},
           {"deepspeed=zero2_offload", 2},
           {"deepspeed={enabled: true, config: zero1}", 1},
           {"deepspeed={enabled: false, config: zero3}", 0},
           {"deepspeed={enabled: true}", 0},
           {"deepspeed={zero_optimization: {stage: 2, overlap_comm: true}, train_batch_size: auto}",
            2},
           {"deepspeed={enabled: true, config: {zero_optimization: {stage: 1}}}", 1},
           {"deepspeed='{\"zero_optimization\": {\"stage\": 2}}'", 2},
           {"deepspeed={bf16: {enabled: true}}", 0},
           {"deepspeed=null", 0}}) {
    EXPECT_EQ(stage_of(assignment), stage) << assignment;
  }
}

TEST(Deepspeed, AJsonFileIsRead) {
  const test::TempDir dir;
  const std::string path = dir.write("ds_config.json", R"({"zero_optimization": {"stage": 2}})");
  const ConfigResult result = test::load_set({"deepspeed=" + path});
  EXPECT_EQ(result.settings.optim.zero_stage, 2);
  EXPECT_EQ(test::effective(result, "training.zero_stage").origin, "derived from deepspeed");
  EXPECT_NE(test::problem_of_set({"deepspeed=" + dir.file("other.json")}).where.find("other.json"),
            std::string::npos);
}

TEST(Deepspeed, ValuesThatAreNoConfigurationAreRefused) {
  const test::TempDir dir;
  const std::string itself = dir.write("itself.json", '"' + dir.file("itself.json") + '"');
  for (const std::string& value : {itself, std::string("3"), std::string("[zero2]")}) {
    EXPECT_EQ(test::problem_of_set({"deepspeed=" + value}).error, "`deepspeed` has no ZeRO stage")
        << value;
  }
}

TEST(Deepspeed, StageThreeIsRefusedByNameWithoutAnAdapter) {
  for (const char* assignment : {"deepspeed=zero3", "training.deepspeed=zero3_offload",
                                 "deepspeed={zero_optimization: {stage: 3}}"}) {
    const std::string stage_1 = "custom.trainer_variant=sft";
    const Problem problem = test::problem_of_set({assignment, stage_1});
    EXPECT_NE(problem.error.find("ZeRO stage 3"), std::string::npos) << problem.error;
    EXPECT_NE(problem.fix.find("zero2"), std::string::npos) << problem.fix;
    EXPECT_EQ(
        test::load_set({assignment, stage_1, "tuner.train_type=lora"}).settings.optim.zero_stage,
        3);
  }
}

TEST(Deepspeed, StageThreeHasRolloutsWithVllmAlone) {
  const std::string backend = "custom.extra.rollout_matching.rollout_backend=";
  const Strings stage_2 = {"deepspeed=zero3", "tuner.train_type=lora",
                           "custom.trainer_variant=rollout_matching_sft"};
  for (const char* name : {"native", "hf"}) {
    Strings set = stage_2;
    set.push_back(backend + name);
    const Problem problem = test::problem_of_set(set);
    EXPECT_NE(problem.what.find(name), std::string::npos) << problem.what;
    EXPECT_NE(problem.fix.find("rollout_backend: vllm"), std::string::npos) << problem.fix;
  }
  Strings set = stage_2;
  set.push_back(backend + "vllm");
  EXPECT_EQ(test::load_set(set).settings.optim.zero_stage, 3);
}

TEST(Deepspeed, ContradictionsAndUnknownNamesAreRefused) {
  EXPECT_EQ(test::problem_of_set({"deepspeed=zero2", "training.zero_stage=1"}).error,
            "`deepspeed` and `training.zero_stage` contradict each other");
  EXPECT_EQ(test::problem_of_set({"deepspeed=zero2", "training.deepspeed=zero1"}).error,
            "`training.deepspeed` and `deepspeed` contradict each other");
  EXPECT_EQ(test::load_set({"deepspeed=zero2", "training.zero_stage=2"}).settings.optim.zero_stage,
            2);
  for (const char* value : {"zero4", "{zero_optimization: {stage: auto}}"})
    EXPECT_EQ(test::problem_of_set({std::string("deepspeed=") + value}).error,
              "`deepspeed` has no ZeRO stage");
}

}  // namespace rematch
