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
  for (const KnownName& row : known_names(NameKind::kKey)) {
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
      EXPECT_EQ(find_known_key(name), &row) << name << " twice";
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

TEST(WrongFile, RecordsAndModelsAreNamed) {
  const test::TempDir dir;
  dir.write("data/train.jsonl", "\n{\"images\": [\"a.png\"], \"objects\": []}\n{}\n");
  const Problem records = only_problem(dir, "data/train.jsonl");
  EXPECT_EQ(records.error, "this is a JSONL of records, not a configuration");
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
