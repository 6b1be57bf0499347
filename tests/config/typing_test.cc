#include "config/support.h"
#include "program/config/schema.h"

namespace rematch {
namespace {
using test::load_text;
using test::problem_of_set;
using test::problems_of;
using test::stage2;
}  // namespace

TEST(Typing, NumbersAreNumbersHoweverYamlWouldGuess) {
  for (const auto& [text, value] : std::vector<std::pair<std::string, double>>{{"1e-4", 1e-4},
                                                                               {"1.0e-4", 1e-4},
                                                                               {"2", 2},
                                                                               {"+.5", 0.5},
                                                                               {"5.", 5},
                                                                               {"1E-3", 1e-3},
                                                                               {"0", 0}}) {
    EXPECT_EQ(load_text("training: {learning_rate: " + text + "}\n").settings.optim.learning_rate,
              value)
        << text;
  }
}

TEST(Typing, WhatIsNotAFiniteNumberIsRefused) {
  for (const char* text :
       {"\"1e-4\"", "'1'",  "abc", ".nan", "nan", "NaN",    ".inf", "inf", "-.inf", "1e999",
        "1_000",    "0x10", "1e",  "true", "[1]", "{a: 1}", "1,5",  "''",  "+-1",   "1 2"}) {
    const auto problems = problems_of("training:\n  learning_rate: " + std::string(text) + "\n");
    ASSERT_EQ(problems.size(), 1u) << text;
    EXPECT_EQ(problems[0].error, "`training.learning_rate` must be a number") << text;
    EXPECT_EQ(problems[0].where, "c.yaml:2:18") << text;
  }
}

TEST(Typing, IntegersAreDecimalDigitsOnly) {
  EXPECT_EQ(load_text("training: {max_steps: 12}\n").settings.cadence.max_steps, 12);
  EXPECT_EQ(load_text("training: {max_steps: +12}\n").settings.cadence.max_steps, 12);
  EXPECT_EQ(load_text("training: {max_steps: -1}\n").settings.cadence.max_steps, -1);
  for (const char* text : {"5.0", "1e3", "\"5\"", "five", "0x10", "true", "[5]", "1_000", "5 "}) {
    if (std::string(text) == "5 ") continue;  // YAML trims it
    const auto problems = problems_of("training: {max_steps: " + std::string(text) + "}\n");
    ASSERT_EQ(problems.size(), 1u) << text;
    EXPECT_EQ(problems[0].error, "`training.max_steps` must be an integer") << text;
  }
}

TEST(Typing, IntegersThatNothingCouldHoldAreOutOfRange) {
  const Problem problem = problem_of_set({"training.save_steps=3000000000"});
  EXPECT_EQ(problem.error, "`training.save_steps` is out of range");
  EXPECT_EQ(problem.what, "3000000000 is not <= 2147483647");
  const Problem longer = problem_of_set({"training.seed=99999999999999999999"});
  EXPECT_EQ(longer.error, "`training.seed` is out of range");
  EXPECT_EQ(longer.what, "99999999999999999999 does not fit 64 bits");
}

TEST(Typing, BooleansAreTrueFalseOneAndZeroWithoutQuotes) {
  for (const char* text : {"true", "1", "True"})
    EXPECT_TRUE(
        load_text("tuner: {freeze_vit: " + std::string(text) + "}\n").settings.tuner.freeze.vit)
        << text;
  for (const char* text : {"false", "0"})
    EXPECT_FALSE(
        load_text("tuner: {freeze_vit: " + std::string(text) + "}\n").settings.tuner.freeze.vit)
        << text;
  for (const char* text : {"\"true\"", "'false'", "yes", "no", "on", "off", "2", "\"1\"", "1.0",
                           "[true]", "{a: true}"}) {
    const auto problems = problems_of("tuner:\n  freeze_vit: " + std::string(text) + "\n");
    ASSERT_EQ(problems.size(), 1u) << text;
    EXPECT_EQ(problems[0].error, "`tuner.freeze_vit` must be true or false") << text;
    EXPECT_EQ(problems[0].where, "c.yaml:2:15") << text;
  }
}

TEST(Typing, ASwitchIsABooleanOrAWord) {
  const auto loaded = [](const char* text) {
    return load_text("training: {gradient_checkpointing: " + std::string(text) + "}\n")
        .settings.model.gradient_checkpointing;
  };
  for (const char* text : {"true", "1", "True"})
    EXPECT_EQ(loaded(text), Checkpointing::kOn) << text;
  for (const char* text : {"false", "0"}) EXPECT_EQ(loaded(text), Checkpointing::kOff) << text;
  for (const char* text : {"selective", "'selective'"})
    EXPECT_EQ(loaded(text), Checkpointing::kSelective) << text;
  for (const char* text : {"\"true\"", "'0'", "[true]"}) {
    const auto problems =
        problems_of("training: {gradient_checkpointing: " + std::string(text) + "}\n");
    ASSERT_EQ(problems.size(), 1u) << text;
    EXPECT_EQ(problems[0].error,
              "`training.gradient_checkpointing` must be one of false, true, selective")
        << text;
  }
  const Problem problem = problem_of_set({"training.gradient_checkpointing=selectiv"});
  EXPECT_EQ(problem.error, "`training.gradient_checkpointing` cannot be `selectiv`");
  EXPECT_EQ(problem.what, "legal values: false, true, selective");
  EXPECT_EQ(problem.fix, "did you mean `selective`?");
}

TEST(Typing, TextStaysAsItIsWritten) {
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, std::string>>{{"no", "no"},
                                                        {"true", "true"},
                                                        {"1e-4", "1e-4"},
                                                        {"007", "007"},
                                                        {"\"a: b\"", "a: b"},
                                                        {"'no'", "no"},
                                                        {"2024-01-01", "2024-01-01"}}) {
    EXPECT_EQ(
        load_text("template: {system: " + text + "}\n").settings.prompt.system_prompt.value_or("?"),
        value);
  }
  EXPECT_EQ(load_text("training: {save_strategy: no}\n").settings.cadence.save_when, When::kNever);
}

TEST(Typing, TextIsNotAListOrMapping) {
  for (const char* text : {"[a]", "{a: b}"}) {
    const auto problems = problems_of("template: {system: " + std::string(text) + "}\n");
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].error, "`template.system` must be text");
  }
}

TEST(Typing, AListOfOneMayBeWrittenWithoutBrackets) {
  EXPECT_EQ(load_text("tuner: {target_modules: q_proj}\n").settings.tuner.targets.target_modules,
            std::vector<std::string>{"q_proj"});
  EXPECT_EQ(
      load_text("tuner: {target_modules: [q_proj, no]}\n").settings.tuner.targets.target_modules,
      (std::vector<std::string>{"q_proj", "no"}));
  EXPECT_EQ(problem_of_set({"tuner.target_modules=[[a]]"}).error,
            "`tuner.target_modules` must be a list of strings");
  EXPECT_EQ(problem_of_set({"tuner.target_modules={a: b}"}).error,
            "`tuner.target_modules` must be a list of strings");
}

TEST(Typing, ChoicesAreNamedWithTheNearest) {
  const Problem problem = problem_of_set({"training.lr_scheduler_type=cosin"});
  EXPECT_EQ(problem.error, "`training.lr_scheduler_type` cannot be `cosin`");
  EXPECT_NE(problem.what.find("cosine_with_min_lr"), std::string::npos);
  EXPECT_EQ(problem.fix, "did you mean `cosine`?");
}

TEST(Typing, SectionsAreMappings) {
  const auto problems =
      problems_of("training: 5\ncustom:\n  extra: [x]\n", {"custom.train_jsonl=a"});
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].error, "`training` must be a mapping");
  EXPECT_EQ(problems[0].where, "c.yaml:1:11");
  EXPECT_EQ(problems[1].error, "`custom.extra` must be a mapping");
}

TEST(Typing, AnEmptySectionIsFine) {
  EXPECT_TRUE(load_text("training:\ndata: {}\n").warnings.empty());
}

TEST(Typing, AKeySetToNullIsAtItsDefault) {
  const ConfigResult result = load_text("training:\n  save_steps: null\n  weight_decay: ~\n");
  EXPECT_EQ(result.settings.cadence.save_steps, 500);
  EXPECT_EQ(result.settings.optim.weight_decay, 0.1);
  EXPECT_NE(test::effective(result, "training.save_steps").origin.find("default (null at "),
            std::string::npos);
}

TEST(Typing, WordsForNull) {
  EXPECT_EQ(
      test::load_set({stage2("native.kv_cache_gib=auto")}).settings.generation.native.kv_cache_gib,
      0);
  EXPECT_EQ(
      test::load_set({stage2("native.kv_cache_gib=1.5")}).settings.generation.native.kv_cache_gib,
      1.5);
  EXPECT_EQ(test::load_set({stage2("top_k=off")}).settings.generation.top_k, 0);
  EXPECT_EQ(test::load_set({stage2("top_k=-1")}).settings.generation.top_k, 0);
  EXPECT_EQ(test::load_set({stage2("top_k=20")}).settings.generation.top_k, 20);
}

/// Values just inside and just outside each range that the contract states.
TEST(Ranges, AreTheContracts) {
  struct Case {
    std::string key;
    std::vector<std::string> legal, illegal;
  };
  const std::vector<Case> cases = {
      {"training.packing_min_fill_ratio", {"1", "0.0001"}, {"0", "1.01", "-0.5"}},
      {"training.packing_buffer", {"1"}, {"0", "-1"}},
      {"global_max_length", {"1"}, {"0"}},
      {"training.per_device_train_batch_size", {"1"}, {"0"}},
      {"training.warmup_ratio", {"0", "1"}, {"-0.1", "1.1"}},
      {"training.adam_beta2", {"0", "0.9999"}, {"1", "-0.1"}},
      {"training.save_total_limit", {"1"}, {"0"}},
      {"training.max_steps", {"-1", "0", "5"}, {"-2"}},
      {"custom.coord_soft_ce_w1.temperature", {"0.1"}, {"0", "-1"}},
      {"custom.coord_soft_ce_w1.target_sigma", {"0.1"}, {"0"}},
      {"custom.coord_soft_ce_w1.target_truncate", {"0", "16"}, {"-1"}},
      {"custom.coord_soft_ce_w1.w1_weight", {"0"}, {"-0.1"}},
      {"custom.train_sample_limit", {"1"}, {"0", "-3"}},
      {stage2("rollout_generate_batch_size"), {"1"}, {"0"}},
      {stage2("max_new_tokens"), {"1"}, {"0"}},
      {stage2("temperature"), {"0", "1.5"}, {"-0.1"}},
      {stage2("top_p"), {"1", "0.1"}, {"0", "1.1"}},
      {stage2("repetition_penalty"), {"0.5"}, {"0", "-1"}},
      {stage2("candidate_top_k"), {"1"}, {"0"}},
      {stage2("maskiou_gate"), {"0", "1"}, {"-0.01", "1.01"}},
      {stage2("maskiou_resolution"), {"1"}, {"0"}},
      {stage2("fp_cost"), {"0"}, {"-1"}},
      {stage2("fn_cost"), {"0"}, {"-1"}},
      {stage2("ot_epsilon"), {"0.1"}, {"0"}},
      {stage2("ot_iters"), {"1"}, {"0"}},
      {stage2("rollout_buffer.m_steps"), {"1"}, {"0"}},
      {stage2("target_truncate"), {"0"}, {"-1"}},
      {stage2("vllm.gpu_memory_utilization"), {"0.9", "1"}, {"0", "1.5"}},
      {stage2("vllm.tensor_parallel_size"), {"1"}, {"0"}},
  };
  for (const Case& one : cases) {
    for (const std::string& value : one.legal)
      EXPECT_NO_THROW(test::load_set({one.key + "=" + value})) << one.key << "=" << value;
    for (const std::string& value : one.illegal) {
      const Problem problem = problem_of_set({one.key + "=" + value});
      EXPECT_EQ(problem.error, "`" + one.key + "` is out of range") << value;
      EXPECT_EQ(problem.where, "--set " + one.key);
      EXPECT_NE(problem.what.find(value), std::string::npos) << problem.what;
    }
  }
}

TEST(Typing, NumbersThatLookOctalAreRefused) {
  for (const char* text : {"010", "-07", "+012", "00", "0755.5", "01e2"}) {
    for (const char* key : {"training.max_steps", "training.learning_rate"}) {
      const Problem problem = test::problem_of_set({std::string(key) + "=" + text});
      EXPECT_NE(problem.fix.find("leading zeros"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(test::load_set({"training.learning_rate=0.5"}).settings.optim.learning_rate, 0.5);
  EXPECT_EQ(test::load_set({"training.save_delay_steps=0"}).settings.cadence.save_delay_steps, 0);
}

// Whatever a key holds, the run may fail for lack of memory or time, but no sum of it overflows.
TEST(Typing, EveryNumberHasBoundsAndNothingBeyondThemIsTaken) {
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured ||
        (spec.type != KeyType::kInteger && spec.type != KeyType::kNumber))
      continue;
    EXPECT_GE(spec.low, -2147483648.0) << spec.path;
    EXPECT_LE(spec.high, 2147483648.0) << spec.path;
    const std::vector<std::string> too_much =
        spec.type == KeyType::kInteger
            ? std::vector<std::string>{"9223372036854775807", "-9223372036854775808"}
            : std::vector<std::string>{"1e19", "-1e19", "1e308"};
    for (const std::string& value : too_much) {
      const Problem problem = problems_of("", {spec.path + "=" + value}).front();
      EXPECT_EQ(problem.error, "`" + spec.path + "` is out of range") << value;
      EXPECT_EQ(problem.where, "--set " + spec.path);
    }
  }
}

TEST(Typing, BoundsExcludeWhatCannotWork) {
  for (const char* set :
       {"training.adam_epsilon=0", "training.adam_epsilon=1e-40", "training.num_train_epochs=1e19",
        "training.num_train_epochs=1e6", "training.per_device_train_batch_size=2000000",
        "tuner.lora_dropout=1", "training.learning_rate=1e6"}) {
    EXPECT_NE(problem_of_set({set}).error.find("is out of range"), std::string::npos) << set;
  }
}

TEST(Typing, AdviceShowsUsualValuesAndLists) {
  EXPECT_NE(problem_of_set({"template.max_pixels=1024x1024"}).fix.find("1048576"),
            std::string::npos);
  EXPECT_NE(problem_of_set({"global_max_length=4k"}).fix.find("4096"), std::string::npos);
  EXPECT_EQ(problem_of_set({"training.report_to=wandb,tensorboard"}).fix,
            "write a list: `[wandb,tensorboard]`");
}

}  // namespace rematch
