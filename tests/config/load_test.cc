#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "config/support.h"
#include "program/config/schema.h"

namespace rematch {
namespace {

using test::problems_of;

bool has_fix(const Problem& problem, const std::string& text) {
  return problem.fix.find(text) != std::string::npos;
}

}  // namespace

TEST(UnknownKeys, AreAllReportedWithTheirPlaceAndASuggestion) {
  const auto problems = problems_of(
      "trainning:\n  seed: 1\n"
      "training:\n  lerning_rate: 1e-4\n  dataloader_num_workers: 3\n"
      "custom:\n  extra:\n    rollout_matching:\n      max_new_token: 5\n      vllm:\n        "
      "gpu_memory_utilisation: 0.4\n"
      "max_steps: 5\n");
  ASSERT_EQ(problems.size(), 6u);
  EXPECT_EQ(problems[0].error, "unknown key `trainning`");
  EXPECT_EQ(problems[0].where, "c.yaml:1:1");
  EXPECT_TRUE(has_fix(problems[0], "did you mean `training`")) << problems[0].fix;
  EXPECT_EQ(problems[1].error, "unknown key `training.lerning_rate`");
  EXPECT_EQ(problems[1].where, "c.yaml:4:3");
  EXPECT_TRUE(has_fix(problems[1], "did you mean `training.learning_rate`")) << problems[1].fix;
  EXPECT_TRUE(has_fix(problems[2], "`data.dataloader_num_workers`")) << problems[2].fix;
  EXPECT_EQ(problems[3].where, "c.yaml:9:7");
  EXPECT_TRUE(has_fix(problems[3], "rollout_matching.max_new_tokens`")) << problems[3].fix;
  EXPECT_TRUE(has_fix(problems[4], "vllm.gpu_memory_utilization`")) << problems[4].fix;
  EXPECT_TRUE(has_fix(problems[5], "did you mean `training.max_steps`? ")) << problems[5].fix;
}

TEST(UnknownKeys, DottedKeysAreToldToNest) {
  const auto problems = problems_of("training.max_steps: 5\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].error, "unknown key `training.max_steps`");
  EXPECT_TRUE(has_fix(problems[0], "nest it below")) << problems[0].fix;
}

TEST(UnknownKeys, OnTheCommandLineToo) {
  const Problem problem = test::problem_of_set({"training.max_step=5"});
  EXPECT_EQ(problem.where, "--set training.max_step");
  EXPECT_TRUE(has_fix(problem, "`training.max_steps`"));
}

TEST(UnknownKeys, BelowAValueAreATypeError) {
  EXPECT_EQ(test::problem_of_set({"training.seed.low=5"}).error,
            "`training.seed` must be an integer");
}

TEST(UnknownKeys, AFloodIsCutAndCounted) {
  std::string yaml;
  for (int i = 0; i < 500; ++i) yaml += "key_" + std::to_string(i) + ": 1\n";
  yaml += std::string(900, 'k') + ": 1\n";
  const auto started = std::chrono::steady_clock::now();
  const auto problems = problems_of(yaml);
  ASSERT_EQ(problems.size(), 51u);
  EXPECT_EQ(problems.back().what, "451 more are not listed");
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
  EXPECT_LT(problems_of(std::string(900, 'k') + ": 1\n")[0].error.size(), 200u);
}

TEST(LoadConfig, ReportsEveryKindOfProblemTogether) {
  const test::TempDir dir;
  dir.write("base.yaml", "training:\n  seed: 1\n  seed: 2\n");
  const std::string path =
      dir.write("c.yaml",
                "extends: base.yaml\nmodel:\n  model: /m\ntraining:\n  max_steps: many\n  "
                "packing_buffer: 0\n  fp16: "
                "true\n  optimizer: multimodal_coord_offset\n"
                "  lerning_rate: 1\n  lr_scheduler_type: cos\ncustom:\n  emit_norm: norm1000\n");
  const UserError error = test::catch_user_error([&] { load_config(path); });
  EXPECT_EQ(exit_code(error.kind()), 2);
  std::vector<std::string> found;
  for (const Problem& problem : error.problems()) found.push_back(problem.error);
  for (const char* expected :
       {"duplicate key `seed`", "`training.max_steps` must be an integer",
        "`training.packing_buffer` is out of range", "`training.fp16` is refused",
        "unknown key `training.lerning_rate`", "`training.lr_scheduler_type` cannot be `cos`",
        "`custom.emit_norm` cannot be `norm1000`"}) {
    EXPECT_NE(std::find(found.begin(), found.end(), expected), found.end()) << expected << "\n"
                                                                            << error.what();
  }
  EXPECT_NE(std::string(error.what()).find("the coordinate-offset adapter is not supported"),
            std::string::npos);
}

TEST(LoadConfig, RequiredKeysAndBadValuesComeTogether) {
  const test::TempDir dir;
  const std::string path = dir.write("c.yaml", "training: {max_steps: many, zzz: 1}\n");
  const UserError error = test::catch_user_error([&] { load_config(path); });
  ASSERT_EQ(error.problems().size(), 4u) << error.what();
  EXPECT_EQ(error.problems()[2].error, "`model.model` is required");
}

TEST(LoadConfig, AMissingFileIsOneProblem) {
  const UserError error = test::catch_user_error([] { load_config("/nowhere/c.yaml"); });
  EXPECT_EQ(exit_code(error.kind()), 4);
  ASSERT_EQ(error.problems().size(), 1u);
  EXPECT_EQ(error.problems()[0].error, "the configuration file does not exist");
}

TEST(LoadConfig, OverridesBeatFilesAndLaterOnesBeatEarlier) {
  const ConfigResult result = test::load_text("training:\n  seed: 1\n  max_steps: 3\n",
                                              {"training.seed=2", "training.seed=3"});
  EXPECT_EQ(result.settings.seed, 3u);
  EXPECT_EQ(result.settings.cadence.max_steps, 3);
  EXPECT_EQ(test::effective(result, "training.seed").origin, "--set training.seed");
  EXPECT_THAT(test::effective(result, "training.max_steps").origin,
              testing::EndsWith("c.yaml:3:14"));
  EXPECT_EQ(test::effective(result, "training.save_steps").origin, "default");
}

TEST(UsersFile, LoadsWithExactlyTheWarningsItDeserves) {
  const ConfigResult result =
      load_config(test::source_path("tests/config/data/users_stage2.yaml"), {}, 4);
  std::vector<std::string> warned;
  for (const Warning& warning : result.warnings) {
    warned.push_back(split(warning.text, '`')[1]);
    EXPECT_NE(warning.where.find(".yaml:"), std::string::npos) << warning.where;
  }
  std::sort(warned.begin(), warned.end());
  EXPECT_EQ(warned, (std::vector<std::string>{"custom.coord_tokens.skip_bbox_norm",
                                              "custom.dump_conversation_path",
                                              "custom.dump_conversation_text",
                                              "custom.extra.rollout_backend_bench",
                                              "custom.extra.rollout_matching.desc_monitor",
                                              "custom.instability_monitor",
                                              "custom.log_file",
                                              "custom.token_type_metrics",
                                              "custom.val_sample_with_replacement: false",
                                              "data.dataloader_persistent_workers",
                                              "data.dataloader_pin_memory",
                                              "data.dataset",
                                              "data.dataset_num_proc",
                                              "data.val_dataset",
                                              "deepspeed",
                                              "model.attn_impl",
                                              "template.truncation_strategy: right",
                                              "training.eval_packing",
                                              "training.gradient_accumulation_steps: 4",
                                              "training.save_safetensors",
                                              "tuner.use_swift_lora"}));
  const Settings& settings = result.settings;
  EXPECT_TRUE(settings.is_stage_2());
  EXPECT_EQ(settings.model.dtype, ModelDtype::kBfloat16);
  EXPECT_EQ(settings.model.global_max_length, 12000);
  EXPECT_EQ(settings.images.max_pixels, 1048576);
  EXPECT_EQ(settings.images.min_pixels, 3136);
  EXPECT_EQ(settings.batches.gradient_accumulation_steps, 8);  // 64 over 4 ranks of 2
  EXPECT_EQ(settings.evaluation.metric_for_best_model, "eval_rollout_f1");
  EXPECT_EQ(settings.optim.aligner_lr, 2e-6);
  EXPECT_EQ(settings.losses.at("target_sigma"), 2.5);
  EXPECT_TRUE(settings.generation.repeat_terminate.enabled);
  EXPECT_TRUE(settings.tuner.freeze.vit);
  EXPECT_THAT(settings.output.run_dir,
              testing::MatchesRegex("output/stage2/v0-[0-9-]+/coord_4b_rollout"));
  EXPECT_EQ(result.files.size(), 2u);
}

TEST(DemoFiles, Load) {
  for (const char* name : {"stage1", "stage1_more", "stage2"}) {
    const ConfigResult result = load_config(
        test::source_path(std::string("configs/demo/") + name + ".yaml"), {"model.model=/m"});
    EXPECT_TRUE(result.warnings.empty())
        << name << ": " << (result.warnings.empty() ? "" : result.warnings[0].text);
  }
}

TEST(AdapterFiles, Load) {
  for (const char* name : {"stage2_demo", "stage2_8b"}) {
    const ConfigResult result =
        load_config(test::source_path(std::string("configs/dora/") + name + ".yaml"));
    EXPECT_TRUE(result.warnings.empty())
        << name << ": " << (result.warnings.empty() ? "" : result.warnings[0].text);
    EXPECT_TRUE(result.settings.tuner.train_type == TrainType::kLora &&
                result.settings.tuner.lora.use_dora && result.settings.rollout_buffer.enabled)
        << name;
  }
}

TEST(EffectiveJson, IsNestedByTheUsersOwnNames) {
  const Json json = effective_json(
      test::load_set({"training.learning_rate=1e-4", "tuner.target_modules=[q_proj]"}));
  EXPECT_EQ(json["training"]["learning_rate"].get<double>(), 1e-4);
  EXPECT_EQ(json["custom"]["extra"]["rollout_matching"]["rollout_backend"].get<std::string>(),
            "vllm");
  EXPECT_EQ(json["tuner"]["target_modules"][0].get<std::string>(), "q_proj");
  EXPECT_TRUE(json["training"]["run_name"].is_null());
  EXPECT_FALSE(json.contains("deepspeed"));
}

TEST(Check, PrintsEveryValueWithItsOriginAndWarningsOnce) {
  const test::TempDir dir;
  const std::string path = dir.write(
      "c.yaml", test::kMinimal + "training:\n  max_steps: 7\ndeepspeed: {enabled: true}\n");
  const std::string text = effective_text(load_config(path, {"training.seed=9"}));
  EXPECT_THAT(text, testing::ContainsRegex("\n  max_steps +7 +" + path + ":6:14\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  seed +9 +--set training.seed\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  save_steps +500 +default\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("\n  vit_lr +1e-05 +derived from training.learning_rate\n"));
  const std::string warning = "warning: `deepspeed` is ignored";
  ASSERT_NE(text.find(warning), std::string::npos);
  EXPECT_EQ(text.find(warning), text.rfind(warning));
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    EXPECT_NE(text.find(spec.path.substr(spec.path.rfind('.') + 1)), std::string::npos)
        << spec.path;
  }
}

TEST(Check, ValuesOfSeveralLinesStayOnOne) {
  const test::TempDir dir;
  const std::string path =
      dir.write("c.yaml", test::kMinimal + "template:\n  system: |\n    a\n    b\n");
  EXPECT_THAT(effective_text(load_config(path)), testing::ContainsRegex("\n  system +a.nb.n +"));
}

TEST(LoadConfig, LeavesWhatNoKeySetsAsInItsBase) {
  Settings base;
  base.variant = TrainerVariant::kRolloutMatching;
  base.model = {.directory = "/m",
                .load_in_4bit = true,
                .four_bit = {.quant_type = FourBitKind::kFp4, .skip_modules = {"lm_head"}}};
  base.data.train_files = {{.path = "a.jsonl"}, {.path = "b.jsonl", .weight = 0.5}};
  base.data.val_jsonl = "val.jsonl";
  base.prompt.user_prompt = "what notes.txt says";  // a text, not the name of a file
  base.backend = "native";
  base.generation = {.max_new_tokens = 77, .temperature = 0.5};
  const ConfigResult result =
      load_config("", {"custom.extra.rollout_matching.max_new_tokens=5"}, 1, base);
  EXPECT_THAT(result.warnings, testing::IsEmpty());
  EXPECT_EQ(result.settings.generation.max_new_tokens, 5);
  EXPECT_EQ(result.settings.generation.temperature, 0.5);
  EXPECT_EQ(result.settings.prompt, base.prompt);
  EXPECT_EQ(result.settings.model, base.model);
  EXPECT_EQ(result.settings.data, base.data);
  EXPECT_EQ(result.settings.backend, "native");
  const ConfigResult full = load_config("", {"model.load_in_4bit=false"}, 1, base);
  EXPECT_THAT(full.warnings, testing::IsEmpty()) << "no one gave a key without effect";
  EXPECT_FALSE(full.settings.model.load_in_4bit);
}

}  // namespace rematch
