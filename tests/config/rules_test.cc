#include <fmt/core.h>

#include <filesystem>

#include "config/support.h"

namespace rematch {

using test::effective;
using test::kStage2;
using test::load_set;
using test::problem_of_set;
using test::stage2;
using test::warning_of;

TEST(RequiredKeys, AreNamedTogether) {
  const test::TempDir dir;
  const std::string path = dir.write("c.yaml", "model: {model: ''}\n");
  const UserError error = test::catch_user_error([&] { load_config(path); });
  ASSERT_EQ(error.problems().size(), 2u);
  EXPECT_EQ(error.problems()[0].error, "`model.model` is required");
  EXPECT_EQ(error.problems()[0].where, path + ":1:16");
  EXPECT_EQ(error.problems()[1].error, "`custom.train_jsonl` is required");
  EXPECT_EQ(error.problems()[1].where, path);
}

TEST(TrainerVariant, ChoosesTheStage) {
  EXPECT_FALSE(load_set({}).settings.is_stage_2());
  EXPECT_FALSE(load_set({"custom.trainer_variant=sft"}).settings.is_stage_2());
  EXPECT_FALSE(load_set({"custom.trainer_variant=null"}).settings.is_stage_2());
  EXPECT_TRUE(load_set({kStage2}).settings.is_stage_2());
  EXPECT_EQ(problem_of_set({"custom.trainer_variant=rollout_matching"}).fix,
            "did you mean `rollout_matching_sft`?");
}

TEST(Accumulation, FollowsTheEffectiveBatchSizeRoundedUp) {
  EXPECT_EQ(load_set({}).settings.batches.gradient_accumulation_steps, 1);
  EXPECT_EQ(load_set({"training.effective_batch_size=32", "training.per_device_train_batch_size=4"})
                .settings.batches.gradient_accumulation_steps,
            8);
  EXPECT_EQ(load_set({"training.effective_batch_size=33", "training.per_device_train_batch_size=4"})
                .settings.batches.gradient_accumulation_steps,
            9);
  EXPECT_EQ(
      load_set({"training.effective_batch_size=32", "training.per_device_train_batch_size=4"}, 3)
          .settings.batches.gradient_accumulation_steps,
      3);
  EXPECT_EQ(load_set({"training.effective_batch_size=1", "training.per_device_train_batch_size=8"})
                .settings.batches.gradient_accumulation_steps,
            1);
  EXPECT_EQ(load_set({"training.effective_batch_size=2147483647"})
                .settings.batches.gradient_accumulation_steps,
            2147483647);
}

TEST(Accumulation, ABatchThatTheRanksAndMicroBatchesDoNotDivideIsSaidToBeAnother) {
  const auto warning = [](const char* effective, const char* micro_batch, int ranks) {
    const ConfigResult result =
        load_set({std::string("training.effective_batch_size=") + effective,
                  std::string("training.per_device_train_batch_size=") + micro_batch},
                 ranks);
    return result.warnings.empty() ? std::string() : warning_of(result).text;
  };
  EXPECT_EQ(warning("6", "2", 1), "");
  EXPECT_EQ(
      warning("5", "2", 1),
      "`training.effective_batch_size: 5` becomes 6: a step has 3 micro-batches of 2 samples");
  EXPECT_EQ(warning("4", "2", 3),
            "`training.effective_batch_size: 4` becomes 6: a step has 3 micro-batches of 2 samples "
            "over 3 ranks");
}

TEST(Accumulation, AnExplicitValueIsOverriddenWithAWarning) {
  const ConfigResult result =
      load_set({"training.effective_batch_size=32", "training.gradient_accumulation_steps=5"});
  EXPECT_EQ(result.settings.batches.gradient_accumulation_steps, 32);
  EXPECT_NE(warning_of(result).text.find("`training.gradient_accumulation_steps: 5` is not used"),
            std::string::npos);
  EXPECT_EQ(load_set({"training.gradient_accumulation_steps=5"})
                .settings.batches.gradient_accumulation_steps,
            5);
}

// spec: select-03
TEST(Lengths, TheGlobalCapFillsTheOthers) {
  const ConfigResult result = load_set({"global_max_length=4096"});
  EXPECT_EQ(result.settings.model.global_max_length, 4096);
  EXPECT_EQ(result.settings.vllm.max_model_len, 4096);
  for (const char* key : {"template.max_length", "model.max_model_len"}) {
    EXPECT_EQ(effective(result, key).value, "4096");
    EXPECT_EQ(effective(result, key).origin, "derived from global_max_length");
  }
}

TEST(Lengths, TheOthersStandForAnAbsentGlobalCap) {
  EXPECT_EQ(load_set({"model.max_model_len=512", "template.max_length=512"})
                .settings.model.global_max_length,
            512);
  EXPECT_EQ(load_set({"template.max_length=256"}).settings.model.global_max_length, 256);
  EXPECT_EQ(load_set({}).settings.model.global_max_length, std::nullopt);
}

TEST(Lengths, ADifferentValueIsNotUsedAndSaysSo) {
  const ConfigResult result = load_set({"global_max_length=100", "model.max_model_len=200"});
  EXPECT_EQ(result.settings.model.global_max_length, 100);
  EXPECT_EQ(warning_of(result).where, "--set model.max_model_len");
  EXPECT_TRUE(load_set({"global_max_length=100", "model.max_model_len=100"}).warnings.empty());
}

TEST(Lengths, TheEnginesOwnLengthWins) {
  EXPECT_EQ(load_set({"global_max_length=100", stage2("vllm.max_model_len=200")})
                .settings.vllm.max_model_len,
            200);
}

TEST(Dtype, Bf16MeansBfloat16) {
  EXPECT_EQ(load_set({}).settings.model.dtype, ModelDtype::kAuto);
  const ConfigResult result = load_set({"training.bf16=true"});
  EXPECT_EQ(result.settings.model.dtype, ModelDtype::kBfloat16);
  EXPECT_EQ(effective(result, "model.torch_dtype").origin, "derived from training.bf16");
  EXPECT_EQ(load_set({"training.bf16=true", "model.torch_dtype=bfloat16"}).settings.model.dtype,
            ModelDtype::kBfloat16);
  EXPECT_EQ(load_set({"training.bf16=false", "model.torch_dtype=float32"}).settings.model.dtype,
            ModelDtype::kFloat32);
  EXPECT_EQ(problem_of_set({"training.bf16=true", "model.torch_dtype=float32"}).error,
            "`training.bf16` and `model.torch_dtype` contradict each other");
}

TEST(ModelDirectory, AHubIdNamesTheDownload) {
  const Problem problem = problem_of_set({"model.model=Qwen/Qwen3-VL-4B-Instruct"});
  EXPECT_EQ(problem.where, "--set model.model");
  EXPECT_NE(problem.fix.find("hf download Qwen/Qwen3-VL-4B-Instruct --local-dir "),
            std::string::npos)
      << problem.fix;
}

TEST(ModelDirectory, APathIsLeftToWhoOpensIt) {
  for (const char* path : {"/models/tiny", "./a/b", "a/b/c", "tiny", "../x/y"})
    EXPECT_NO_THROW(load_set({std::string("model.model=") + path})) << path;
}

TEST(ModelDirectory, ADirectoryThatExistsIsNoHubId) {
  const test::TempDir dir;
  dir.write("org/name/config.json", "{}");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  EXPECT_NO_THROW(load_set({"model.model=org/name"}));
  std::filesystem::current_path(before);
}

TEST(ModelDirectory, ARunStandsForItsBestCheckpointAndSaysSo) {
  const test::TempDir dir;
  for (const char* step : {"10", "20"})
    dir.write(fmt::format("run/checkpoint-{}/config.json", step), "{}");
  const std::string run = dir.file("run");
  const auto model_of = [](const std::string& path) {
    const ConfigResult result = load_set({"model.model=" + path});
    EXPECT_LE(result.warnings.size(), 1u);
    return std::pair(result.settings.model.directory,
                     result.warnings.empty() ? std::string() : result.warnings.front().text);
  };
  EXPECT_EQ(model_of(run).first, run + "/checkpoint-20");
  EXPECT_THAT(model_of(run).second, testing::HasSubstr("the newest checkpoint of"));
  std::filesystem::create_directory_symlink("checkpoint-10", run + "/best");
  std::filesystem::create_directory_symlink("checkpoint-20", run + "/last");
  EXPECT_EQ(model_of(run), std::pair(run + "/checkpoint-10",
                                     "`model.model: " + run + "` is a run directory: taking " +
                                         run + "/checkpoint-10, the best checkpoint of " + run));
  EXPECT_EQ(model_of(run + "/last"), std::pair(run + "/checkpoint-20", std::string()))
      << "a link changes when its run goes on, so the stored configuration names what it led to";
  EXPECT_EQ(model_of(run + "/checkpoint-10"), std::pair(run + "/checkpoint-10", std::string()));
  const ConfigResult linked = load_set({"model.model=" + run + "/last"});
  for (const EffectiveValue& value : linked.effective) {
    if (value.key != "model.model") continue;
    EXPECT_EQ(value.value, run + "/checkpoint-20");
    EXPECT_EQ(value.origin, run + "/last (--set model.model)");
  }
}

TEST(Template, AnotherModelsIsRefusedNamingTheTypeFound) {
  const test::TempDir dir;
  dir.write("config.json", "{\"model_type\": \"qwen2_vl\"}");
  const Problem problem =
      problem_of_set({"template.template=qwen2_vl", "model.model=" + dir.path()});
  EXPECT_EQ(problem.error, "`template.template: qwen2_vl` is not supported");
  EXPECT_EQ(problem.what, "config.json says model_type qwen2_vl");
  EXPECT_EQ(problem_of_set({"template.template=llava"}).what,
            "the model type could not be read from config.json");
  dir.write("config.json", "[broken");
  EXPECT_EQ(problem_of_set({"template.template=llava", "model.model=" + dir.path()}).what,
            "the model type could not be read from config.json");
}

TEST(Prompt, APathToTextIsRead) {
  const test::TempDir dir;
  const std::string path = dir.write("p.txt", "Find everything.\n");
  EXPECT_EQ(load_set({"custom.user_prompt=" + path}).settings.prompt.user_prompt,
            "Find everything.");
  EXPECT_EQ(load_set({"template.system=" + path}).settings.prompt.system_prompt,
            "Find everything.");
  EXPECT_EQ(load_set({"custom.user_prompt=Find it"}).settings.prompt.user_prompt, "Find it");
  EXPECT_EQ(load_set({}).settings.prompt.user_prompt, std::nullopt);
}

TEST(Prompt, AFileThatCannotServeIsAnError) {
  const test::TempDir dir;
  for (const std::string key : {"custom.user_prompt=", "template.system="}) {
    EXPECT_EQ(problem_of_set({key + "/nowhere/p.txt"}).error, "the prompt file cannot be read");
    EXPECT_EQ(problem_of_set({key + dir.write("e.txt", " \n")}).error, "the prompt file is empty");
    EXPECT_EQ(problem_of_set({key + dir.write("big.txt", std::string((1 << 20) + 1, 'a'))}).error,
              "the prompt file is too large");
    EXPECT_EQ(problem_of_set({key + dir.write("b.txt", "\xff")}).error,
              "the prompt file is not UTF-8 text");
  }
  EXPECT_EQ(load_set({"custom.user_prompt=" + dir.write("m.txt",
                                                        "\xEF\xBB\xBF"
                                                        "Find")})
                .settings.prompt.user_prompt,
            "Find");
}

TEST(LearningRates, FallBackToTheOneOfTheLanguageModel) {
  const Settings plain = load_set({}).settings;
  EXPECT_EQ(plain.optim.learning_rate, 1e-5);
  EXPECT_EQ(load_set({"tuner.train_type=lora"}).settings.optim.learning_rate, 1e-4);
  const Settings settings =
      load_set({"training.learning_rate=1e-3", "training.vit_lr=2e-4"}).settings;
  EXPECT_EQ(settings.optim.vit_lr, 2e-4);
  EXPECT_EQ(settings.optim.aligner_lr, 1e-3);
}

TEST(LearningRates, ThatHardlyEverLearnAreWarnedOf) {
  const std::string rate = "training.learning_rate=", lora = "tuner.train_type=lora";
  EXPECT_NE(warning_of(load_set({rate + "1"})).text.find("far above any usual rate"),
            std::string::npos);
  EXPECT_NE(warning_of(load_set({rate + "1e-5", lora})).text.find("leave it out for 1e-4"),
            std::string::npos);
  EXPECT_EQ(warning_of(load_set({rate + "1e-6", lora})).where, "--set training.learning_rate");
  for (const char* fine : {"1e-2", "1e-5", "0"})
    EXPECT_TRUE(load_set({rate + fine}).warnings.empty()) << fine;
  for (const char* fine : {"1e-2", "1e-4", "0"})
    EXPECT_TRUE(load_set({rate + fine, lora}).warnings.empty()) << fine;
  EXPECT_TRUE(load_set({lora}).warnings.empty());
}

TEST(LearningRates, OfAFrozenGroupHasNoEffectAndSaysSo) {
  EXPECT_EQ(warning_of(load_set({"training.vit_lr=2e-4", "tuner.freeze_vit=true"})).text,
            "`training.vit_lr` has no effect: `tuner.freeze_vit` is true");
}

TEST(Offload, WithoutAPartHasNoEffectAndSaysSo) {
  const std::string key = "custom.extra.rollout_matching.offload.";
  const auto is_warned = [&](const std::vector<std::string>& overrides) {
    for (const Warning& warning : load_set(overrides).warnings) {
      if (warning.text.find("offload.enabled` has no effect: ") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_warned({kStage2, key + "enabled=true"}));
  EXPECT_FALSE(is_warned({kStage2, key + "enabled=true", key + "offload_model=true"}));
  EXPECT_FALSE(is_warned({kStage2, key + "enabled=true", key + "offload_optimizer=true"}));
  EXPECT_FALSE(is_warned({kStage2}));
}

TEST(Adapters, SettingsOfAnAdapterHaveNoEffectInFullTrainingAndSaySo) {
  for (const std::string& assignment : std::vector<std::string>{
           "lora_rank=16", "lora_alpha=64", "lora_dropout=0.1", "target_modules=[q_proj]"}) {
    EXPECT_NE(warning_of(load_set({"tuner." + assignment})).text.find("`tuner.train_type` is full"),
              std::string::npos)
        << assignment;
    EXPECT_TRUE(load_set({"tuner.train_type=lora", "tuner." + assignment}).warnings.empty());
  }
  EXPECT_EQ(warning_of(load_set({"tuner.use_dora=true"})).text,
            "`tuner.use_dora` has no effect: `tuner.train_type` is full");
}

TEST(Adapters, ARegexThatDoesNotCompileIsAnErrorWhateverElseIsWrong) {
  const std::vector<std::string> both{"tuner.train_type=lora", "tuner.target_regex='layers\\.(1|2'",
                                      "tuner.lora_rank=0"};
  const UserError error = test::catch_user_error([&] { load_set(both); });
  ASSERT_EQ(error.problems().size(), 2u);
  EXPECT_NE(error.problems()[1].error.find("does not compile"), std::string::npos);
  EXPECT_NE(error.problems()[1].where.find("tuner.target_regex"), std::string::npos);
}

TEST(Adapters, ARegexTakesThePlaceOfAListAndSaysSo) {
  EXPECT_EQ(warning_of(load_set({"tuner.train_type=lora", "tuner.target_regex='.*q_proj'",
                                 "tuner.target_modules=[k_proj]"}))
                .text,
            "`tuner.target_modules` has no effect: `tuner.target_regex` is given");
}

TEST(Adapters, RankAlphaAndDropoutHaveRanges) {
  for (const char* assignment :
       {"tuner.lora_rank=0", "tuner.lora_alpha=0", "tuner.lora_dropout=1.5",
        "tuner.lora_dropout=-0.1", "tuner.lora_bias=all"}) {
    EXPECT_EQ(
        test::catch_user_error([&] { load_set({"tuner.train_type=lora", assignment}); }).kind(),
        ErrorKind::kConfig)
        << assignment;
  }
}

TEST(Freezing, EverythingIsAnError) {
  EXPECT_EQ(
      problem_of_set({"tuner={freeze_llm: true, freeze_vit: true, freeze_aligner: true}"}).error,
      "nothing is trainable");
}

TEST(Schedule, AMinimumNeedsExactlyOneOfItsTwoForms) {
  const std::string type = "training.lr_scheduler_type=cosine_with_min_lr";
  EXPECT_EQ(
      load_set({type, "training.lr_scheduler_kwargs={min_lr: 1e-6}"}).settings.schedule.min_lr,
      1e-6);
  EXPECT_EQ(load_set({type, "training.lr_scheduler_kwargs={min_lr_rate: 0.1}"})
                .settings.schedule.min_lr_rate,
            0.1);
  EXPECT_EQ(problem_of_set({type}).what, "neither is given");
  EXPECT_EQ(
      problem_of_set({type, "training.lr_scheduler_kwargs={min_lr: 1e-6, min_lr_rate: 0.1}"}).what,
      "both are given");
  EXPECT_EQ(problem_of_set({"training.lr_scheduler_kwargs={min_lr: 1e-6}"}).what,
            "lr_scheduler_type is cosine");
  EXPECT_EQ(problem_of_set({"training.lr_scheduler_kwargs={min: 1}"}).error,
            "unknown key `training.lr_scheduler_kwargs.min`");
}

// spec: pack-09 select-18
TEST(Packing, NeedsACapAndCarriesOnlyInStage2) {
  const test::TempDir dir;
  const auto has = [](const std::vector<Problem>& problems, const std::string& error) {
    return std::any_of(problems.begin(), problems.end(),
                       [&](const Problem& problem) { return problem.error == error; });
  };
  const std::string no_cap = "`training.packing: true` needs `global_max_length`";
  const std::string carry = "`training.packing_drop_last: false` is refused in stage 2";
  EXPECT_TRUE(has(test::problems_of("", {"training.packing=true"}), no_cap));
  EXPECT_TRUE(has(
      test::problems_of("", {"training.packing=true", "training.packing_drop_last=false", kStage2}),
      carry));
  EXPECT_NO_THROW(load_set({"training.packing_drop_last=false", kStage2}));
}

TEST(CoordTokens, AreNeededInBothStages) {
  for (const std::string& stage : {std::string("custom.trainer_variant=sft"), kStage2}) {
    EXPECT_EQ(problem_of_set({stage, "custom.coord_tokens.enabled=false"}).error,
              "`custom.coord_tokens.enabled` is refused");
  }
}

TEST(CoordLoss, Stage2FallsBackToTheSharedValues) {
  const std::string shared =
      "custom.coord_soft_ce_w1={target_sigma: 8, temperature: 2, w1_weight: 0.5, target_truncate: "
      "16}";
  const Settings both =
      load_set({kStage2, shared, stage2("target_sigma=3"), stage2("gate_weight=0.25")}).settings;
  EXPECT_EQ(both.losses.at("target_sigma"), 3);
  EXPECT_EQ(both.losses.at("temperature_coord"), 2);
  EXPECT_EQ(both.losses.at("w1_weight"), 0.5);
  EXPECT_EQ(both.losses.at("gate_weight"), 0.25);
  EXPECT_EQ(both.losses.at("target_truncate"), 16);
  const Settings stage_1 = load_set({shared, stage2("target_sigma=3")}).settings;
  EXPECT_EQ(stage_1.losses.at("target_sigma"), 8);
}

TEST(CoordLoss, DisabledMeansWeightsOfZeroWhereNoneIsGiven) {
  const Settings settings =
      load_set({"custom.coord_soft_ce_w1={enabled: false, w1_weight: 0.5}"}).settings;
  EXPECT_EQ(settings.losses.at("soft_ce_weight"), 0);
  EXPECT_EQ(settings.losses.at("w1_weight"), 0.5);
}

}  // namespace rematch
