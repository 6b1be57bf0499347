// Names that users of other trainers type.
#include "program/config/suggest.h"
#include "base/text.h"
#include "config/support.h"
#include "program/config/schema.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

Problem only_problem(const test::TempDir& dir, const std::string& path) {
  const UserError error = test::catch_user_error([&] { load_config(dir.file(path)); });
  EXPECT_EQ(error.problems().size(), 1u) << error.what();
  return error.problems().front();
}

}  // namespace

TEST(ForeignKeys, EveryRowNamesAKeyOfOursAndShadowsNone) {
  for (const KnownName& row : foreign_keys_table()) {
    const std::string key = row.ours;
    if (!key.empty()) {
      ASSERT_NE(find_key(key), nullptr) << row.names;
      EXPECT_EQ(find_key(key)->state, KeyState::kHonoured) << row.names;
    } else {
      EXPECT_NE(std::string(row.remark), "") << row.names;
    }
    for (const std::string& name : split(row.names, ' ')) {
      for (const KeySpec& spec : schema()) {
        if (spec.state != KeyState::kHonoured) continue;
        EXPECT_NE(split(spec.path, '.').back(), name);
      }
      EXPECT_EQ(find_foreign(name), &row) << name << " twice";
    }
  }
}

TEST(ForeignKeys, AreAnsweredByName) {
  for (const auto& [line, answer] : std::vector<std::pair<std::string, std::string>>{
           {"training.lr_schedule=cosine", "use `training.lr_scheduler_type`"},
           {"training.optim=adamw_torch", "use `training.optimizer`"},
           {"training.patience=3", "use `training.early_stopping_patience`"},
           {"training.load_best_model_at_end=true", "`best` keeps the best checkpoint"},
           {"model.load_in_8bit=true", "`model.load_in_4bit: true`"},
           {"model.bnb_4bit_compute_dtype=bfloat16", "use `model.torch_dtype`"},
           {"training.push_to_hub=true", "hf upload"},
           {"training.label_smoothing_factor=0.1", "target_sigma"},
           {"training.auto_find_batch_size=true", "per_device_train_batch_size"},
           {"training.micro_batch_size=1", "use `training.per_device_train_batch_size`"},
           {"training.n_epochs=3", "use `training.num_train_epochs`"},
           {"training.evaluation_strategy=steps", "`training.eval_strategy`"},
           {"training.gradient_accumulation=4", "`training.gradient_accumulation_steps`"},
           {"training.gradient_checkpointing_kwargs=x", "`training.gradient_checkpointing`"},
           {"training.Micro-Batch-Size=1", "use `training.per_device_train_batch_size`"},
           {"data.mosaic=1.0", "`data.augment` has `hflip`, `vflip`, `rot90`, `crop` and `color`"},
           {"training.mixup=0.1", "`data.augment`"},
           {"data.fliplr=0.5", "use `data.augment.hflip`"},
           {"tuner.train_type=qlora", "rematch plan"}})
    EXPECT_THAT(test::problem_of_set({line}).fix, HasSubstr(answer)) << line;
}

TEST(ForeignKeys, TypedNamesBecomeOurs) {
  for (const auto& [typed, key] : std::vector<std::pair<std::string, std::string>>{
           {"--max_steps", "training.max_steps"},
           {"--max-steps", "training.max_steps"},
           {"--lr", "training.learning_rate"},
           {"training.max_steps", "training.max_steps"},
           {"target_policy", "custom.extra.rollout_matching.target_policy"},
           {"--learning_rte", "training.learning_rate"},
           {"--temperature", "custom.extra.rollout_matching.temperature"},
           {"--push_to_hub", ""},
           {"--", ""},
           {"xyzzy", ""}})
    EXPECT_EQ(guess_key(typed), key) << typed;
}

TEST(WrongFile, AFlatFileOfArgumentsGetsOneErrorWithItsSections) {
  const test::TempDir dir;
  dir.write("args.yaml",
            "model: /models/tiny\ndataset:\n  - data/train.jsonl\ntrain_type: lora\n"
            "lora_rank: 16\nlora_alpha: 32\nlearning_rate: \"1e-4\"\nnum_train_epochs: 5\n"
            "output_dir: out\nquant_bits: 4\nfoo_bar_option: 7\nlora_r: 4\nimgsz: 640\n");
  const Problem problem = only_problem(dir, "args.yaml");
  EXPECT_THAT(problem.error, HasSubstr("flat file of arguments"));
  EXPECT_THAT(problem.what, HasSubstr("12 keys at the top level: model, dataset, train_type"));
  for (const char* part :
       {"\n    model:\n      model: /models/tiny\n", "train_jsonl: data/train.jsonl",
        "train_type: lora", "lora_rank: 16",
        "    training:\n      learning_rate: 1e-4\n      num_train_epochs: 5\n      output_dir: "
        "out",
        "# quant_bits: only 4 bits", "# foo_bar_option: no counterpart",
        "# lora_r: `tuner.lora_rank` is set above", "max_pixels: 409600"})
    EXPECT_THAT(problem.fix, HasSubstr(part));
  const size_t yaml = problem.fix.find("\n    ");
  ASSERT_NE(yaml, std::string::npos);
  std::string text = problem.fix.substr(yaml + 1) + "\n", unindented;
  for (const std::string& line : split(text, '\n'))
    unindented += (line.size() > 4 ? line.substr(4) : "") + "\n";
  EXPECT_NO_THROW(load_config(dir.write("sections.yaml", unindented)));
}

TEST(WrongFile, AFewUnknownKeysAreNoFlatFile) {
  const std::vector<Problem> problems =
      test::problems_of("lr: 1\nepochs: 2\ntraining:\n  optim: x\n");
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_THAT(problems[0].fix, HasSubstr("training.learning_rate"));
}

TEST(WrongFile, RecordsAndModelsAreNamed) {
  const test::TempDir dir;
  dir.write("data/train.jsonl", "\n{\"images\": [\"a.png\"], \"objects\": []}\n{}\n");
  const Problem records = only_problem(dir, "data/train.jsonl");
  EXPECT_EQ(records.error, "this is a JSONL of records, not a configuration");
  EXPECT_EQ(records.what, "its first line holds images, objects");
  EXPECT_EQ(records.fix,
            "write a configuration for it: rematch init MODEL " + dir.file("data/train.jsonl"));
  dir.write("base/config.json", "{}");
  EXPECT_THAT(only_problem(dir, "base").fix, HasSubstr("rematch init"));
  EXPECT_EQ(only_problem(dir, "data").error, "the configuration is a directory");
  dir.write("run/args.json", "{}");
  EXPECT_THAT(only_problem(dir, "run").fix, HasSubstr("--resume"));
  dir.write("in.json", R"({"model": {"model": "/m"}, "custom": {"train_jsonl": "t"}})");
  EXPECT_NO_THROW(load_config(dir.file("in.json")));
}

TEST(Errors, ABlankLineStandsBetweenTwo) {
  const UserError error = test::catch_user_error([] { test::load_set({"a=1", "b=2"}); });
  EXPECT_THAT(error.what(), HasSubstr("\n\nerror: unknown key `b`"));
}

}  // namespace rematch
