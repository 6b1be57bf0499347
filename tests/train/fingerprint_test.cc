#include "learn/resume/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

void write_model_files(const test::TempDir& dir, const std::string& name) {
  dir.write(name + "/config.json", "{\"dtype\": \"float32\"}\n");
  dir.write(name + "/tokenizer.json", "{}");
  dir.write(name + "/chat_template.jinja", "{{ messages }}");
}

FingerprintInput some_input(const std::string& model_dir) {
  return {.model_dir = model_dir,
          .parameters = {{"a", at::zeros({2, 3})}, {"b", at::zeros({4})}},
          .base_parameters = {{"c", at::full({2}, 0.5f)}},
          .dataset_hash = "0123456789abcdef",
          .num_samples = 12,
          .batches = {.per_device_train_batch_size = 2, .gradient_accumulation_steps = 3},
          .seed = 7,
          .trainer_variant = "sft",
          .pack = {.enabled = true},
          .packing_length = 512,
          .m_steps = 4,
          .settings = {{"training.learning_rate", "1e-5"},
                       {"training.seed", "7"},
                       {"training.output_dir", "a"}}};
}

/// Names of the fixed facts that make two runs different.
std::vector<std::string> what_differs(const Fingerprint& saved, const Fingerprint& now) {
  std::vector<std::string> names;
  try {
    compare_fingerprints(saved, now, "runs/checkpoint-5");
  } catch (const UserError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    for (const Problem& problem : error.problems()) {
      const std::string name = problem.error.substr(problem.error.find(": ") + 2);
      names.push_back(name.substr(0, name.size() - std::string(" differs").size()));
      EXPECT_EQ(problem.where, "runs/checkpoint-5");
    }
  }
  return names;
}

}  // namespace

TEST(Fingerprint, DoesNotDependOnTheModelsPath) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  write_model_files(dir, "b");
  EXPECT_EQ(make_fingerprint(some_input(dir.file("a"))),
            make_fingerprint(some_input(dir.file("b"))));
  EXPECT_TRUE(compare_fingerprints(make_fingerprint(some_input(dir.file("a"))),
                                   make_fingerprint(some_input(dir.file("b"))), "c")
                  .empty());
}

TEST(Fingerprint, ACheckpointWithTheConfiguredImageAreaIsTheSameModel) {
  const test::TempDir dir;
  write_model_files(dir, "base");
  write_model_files(dir, "checkpoint");
  dir.write("base/preprocessor_config.json", "{\"size\": {\"longest_edge\": 9}}");
  FingerprintInput input = some_input(dir.file("base"));
  input.image_area = {1, 2};
  const Fingerprint saved = make_fingerprint(input);
  write_image_area(dir.file("base"), dir.file("checkpoint"), *input.image_area);
  input.model_dir = dir.file("checkpoint");
  EXPECT_EQ(make_fingerprint(input), saved);
  input.image_area.reset();
  EXPECT_EQ(make_fingerprint(input), saved);
}

TEST(Fingerprint, EveryFixedFactIsNamedWhenItDiffers) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  const Fingerprint saved = make_fingerprint(some_input(dir.file("a")));
  using Change = std::function<void(FingerprintInput&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"model (parameters)",
       [](FingerprintInput& input) { input.parameters[0].tensor = at::zeros({3, 2}); }},
      {"model (parameters)", [](FingerprintInput& input) { input.parameters[0].name = "c"; }},
      {"model (values of the adapter's base)",
       [](FingerprintInput& input) { input.base_parameters[0].tensor = at::full({2}, 1.5f); }},
      {"custom.train_jsonl (content)",
       [](FingerprintInput& input) { input.dataset_hash = "fedcba9876543210"; }},
      {"training samples", [](FingerprintInput& input) { input.num_samples = 11; }},
      {"WORLD_SIZE", [](FingerprintInput& input) { input.world_size = 2; }},
      {"training.per_device_train_batch_size",
       [](FingerprintInput& input) { input.batches.per_device_train_batch_size = 1; }},
      {"training.gradient_accumulation_steps",
       [](FingerprintInput& input) { input.batches.gradient_accumulation_steps = 1; }},
      {"training.dataloader_drop_last",
       [](FingerprintInput& input) { input.batches.drop_last = true; }},
      {"training.seed", [](FingerprintInput& input) { input.seed = 8; }},
      {"custom.trainer_variant",
       [](FingerprintInput& input) { input.trainer_variant = "rollout_matching_sft"; }},
      {"custom.extra.rollout_matching.post_rollout_pack_scope",
       [](FingerprintInput& input) { input.pack.scope = PackScope::kWindow; }},
      {"global_max_length", [](FingerprintInput& input) { input.packing_length = 1024; }},
      {"rollout_buffer m_steps", [](FingerprintInput& input) { input.m_steps = 1; }},
      {"tuner.freeze_vit", [](FingerprintInput& input) { input.freeze.vit = true; }},
  };
  for (const auto& [name, change] : changes) {
    FingerprintInput input = some_input(dir.file("a"));
    change(input);
    EXPECT_EQ(what_differs(saved, make_fingerprint(input)), std::vector<std::string>{name});
  }
}

TEST(Fingerprint, ABaseThatIsLoadedOtherwiseNamesTheSetting) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  FingerprintInput input = some_input(dir.file("a"));
  input.settings.emplace_back("model.bnb_4bit_use_double_quant", "false");
  const Fingerprint saved = make_fingerprint(input);
  input.settings.back().second = "true";
  input.base_parameters[0].tensor = at::full({2}, 1.5f);
  const UserError error = test::catch_user_error(
      [&] { compare_fingerprints(saved, make_fingerprint(input), "checkpoint-4"); });
  EXPECT_EQ(error.problems()[0].what, "model.bnb_4bit_use_double_quant: false → true");
}

TEST(Fingerprint, EveryPartOfAPackedBaseCounts) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  FourBitWeight packed =
      quantise(at::linspace(-1, 1, 4 * 64).view({4, 64}), {.use_double_quant = true});
  const auto with = [&](const FourBitWeight& weight) {
    FingerprintInput input = some_input(dir.file("a"));
    input.base_parameters = {{"c", at::empty({4, 64}, at::TensorOptions(at::kMeta)),
                              std::make_shared<const FourBitWeight>(weight)}};
    return make_fingerprint(input);
  };
  const Fingerprint saved = with(packed);
  EXPECT_TRUE(what_differs(saved, with(packed)).empty());
  using Change = std::function<void(FourBitWeight&)>;
  for (const Change& change : std::vector<Change>{
           [](FourBitWeight& weight) { weight.codes = weight.codes + 1; },
           [](FourBitWeight& weight) { weight.absmax = weight.absmax + 1; },
           [](FourBitWeight& weight) { weight.nested_absmax = weight.nested_absmax * 1.5; },
           [](FourBitWeight& weight) { weight.nested_map = weight.nested_map * 1.5; },
           [](FourBitWeight& weight) { weight.offset *= 1.5f; },
           [](FourBitWeight& weight) { weight.kind = FourBitKind::kFp4; }}) {
    FourBitWeight other = packed;
    change(other);
    EXPECT_EQ(what_differs(saved, with(other)),
              std::vector<std::string>{"model (values of the adapter's base)"});
  }
}

TEST(Fingerprint, AllDifferencesAreNamedTogetherWithOldAndNew) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  FingerprintInput input = some_input(dir.file("a"));
  const Fingerprint saved = make_fingerprint(input);
  input.world_size = 2;
  input.seed = 8;
  const UserError error = test::catch_user_error(
      [&] { compare_fingerprints(saved, make_fingerprint(input), "runs/checkpoint-5"); });
  ASSERT_EQ(error.problems().size(), 2u);
  EXPECT_EQ(error.problems()[0].what, "checkpoint: 1; now: 2");
  EXPECT_EQ(error.problems()[1].what, "checkpoint: 7; now: 8");
  EXPECT_NE(error.problems()[1].fix.find("`model.model: runs/checkpoint-5`"), std::string::npos);
  dir.write("checkpoint-5/adapter_config.json", "{}");  // no model.model
  const UserError adapter = test::catch_user_error(
      [&] { compare_fingerprints(saved, make_fingerprint(input), dir.file("checkpoint-5")); });
  EXPECT_NE(adapter.problems()[1].fix.find("rematch merge " + dir.file("checkpoint-5")),
            std::string::npos);
}

TEST(Fingerprint, PackingSwitchedOffIsADifference) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  FingerprintInput input = some_input(dir.file("a"));
  const Fingerprint saved = make_fingerprint(input);
  input.pack.enabled = false;
  EXPECT_EQ(what_differs(saved, make_fingerprint(input)),
            (std::vector<std::string>{"training.packing",
                                      "custom.extra.rollout_matching.post_rollout_pack_scope",
                                      "global_max_length"}));
  // Without packing the length of a row means nothing.
  FingerprintInput longer = input;
  longer.packing_length = 77;
  EXPECT_TRUE(what_differs(make_fingerprint(input), make_fingerprint(longer)).empty());
}

TEST(Fingerprint, AnotherConfigOrTokenizerIsAnotherModel) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  write_model_files(dir, "b");
  const Fingerprint saved = make_fingerprint(some_input(dir.file("a")));
  dir.write("b/config.json", "{\"dtype\": \"float32\", \"vocab_size\": 3}\n");
  dir.write("b/tokenizer.json", "{\"version\": \"1.0\"}");
  EXPECT_EQ(what_differs(saved, make_fingerprint(some_input(dir.file("b")))),
            (std::vector<std::string>{"model (config.json)", "model (tokenizer.json)"}));
}

TEST(Fingerprint, OtherRecordsAreNamedWithoutTheirHash) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  FingerprintInput input = some_input(dir.file("a"));
  input.dataset_hash = "f29f5a4689c371f4";
  const Fingerprint saved = make_fingerprint(input);
  input.dataset_hash = "0d22dd3897005b77";
  const UserError error =
      test::catch_user_error([&] { compare_fingerprints(saved, make_fingerprint(input), "c"); });
  EXPECT_EQ(error.problems()[0].what, "the checkpoint was trained on other records");
  EXPECT_EQ(error.problems()[0].fix.find("f29f5a"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("without --resume"), std::string::npos);
}

TEST(Fingerprint, OtherRecordsAreNamedByTheirFiles) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  const auto what = [&](const char* before, const char* after) {
    FingerprintInput input = some_input(dir.file("a"));
    input.settings = {{"custom.train_jsonl", before}};
    const Fingerprint saved = make_fingerprint(input);
    input.dataset_hash = "0d22dd3897005b77";
    input.settings = {{"custom.train_jsonl", after}};
    return test::catch_user_error(
               [&] { compare_fingerprints(saved, make_fingerprint(input), "c"); })
        .problems()[0]
        .what;
  };
  EXPECT_EQ(what("a.jsonl", "b.jsonl"),
            "the checkpoint was trained on other records (was: a.jsonl; now: b.jsonl)");
  EXPECT_EQ(what("a.jsonl", "a.jsonl"),
            "the checkpoint was trained on other records: a.jsonl has changed since");
}

TEST(Fingerprint, IgnoresTheDtypeInTheConfig) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  write_model_files(dir, "b");
  dir.write("a/config.json", "{\"dtype\": \"bfloat16\"}");
  // as save_hf_model writes the other one for a float32 run
  dir.write("b/config.json", "{\n  \"dtype\": \"float32\"\n}\n");
  EXPECT_EQ(make_fingerprint(some_input(dir.file("a"))),
            make_fingerprint(some_input(dir.file("b"))));
}

TEST(Fingerprint, AChangedSettingIsAWarningUnlessItIsHarmless) {
  const test::TempDir dir;
  write_model_files(dir, "a");
  FingerprintInput input = some_input(dir.file("a"));
  const Fingerprint saved = make_fingerprint(input);
  input.settings = {{"training.learning_rate", "2e-5"},
                    {"training.weight_decay", "0.1"},
                    {"training.seed", "9"},
                    {"training.output_dir", "b"},
                    {"training.save_steps", "10"},
                    {"data.dataloader_num_workers", "4"}};
  const std::vector<std::string> warnings =
      compare_fingerprints(saved, make_fingerprint(input), "c");
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "resumed with a different training.learning_rate: 1e-5 → 2e-5",
                          "resumed with a different training.weight_decay: absent → 0.1"}));
  dir.write("a/chat_template.jinja", "{{ other }}");
  EXPECT_EQ(
      compare_fingerprints(saved, make_fingerprint(some_input(dir.file("a"))), "c"),
      std::vector<std::string>{"resumed with a different model (chat template and processor)"})
      << "no hashes";
}

TEST(Fingerprint, AModelWithoutATokenizerIsAnError) {
  const test::TempDir dir;
  dir.write("a/config.json", "{}");
  EXPECT_EQ(test::catch_user_error([&] { make_fingerprint(some_input(dir.file("a"))); }).kind(),
            ErrorKind::kEnvironment);
}

}  // namespace rematch
