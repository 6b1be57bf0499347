#include "model/checkpoint/peft.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/checkpoint/model_dir.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::string golden(const std::string& name) {
  return test::source_path("tests/golden/lora/" + name);
}

/// A copy of PEFT's own directory that a test may spoil.
class AdapterCopy {
 public:
  AdapterCopy() {
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
      dir_.write(name, read_file(golden("dora/") + name));
  }
  void set(const std::string& key, const Json& value) const {
    Json root = read_json_file(dir_.file("adapter_config.json"));
    root[key] = value;
    dir_.write("adapter_config.json", root.dump());
  }
  UserError refused() const {
    return test::catch_user_error([&] { read_peft_adapter(dir_.path()); });
  }
  const test::TempDir& dir() const { return dir_; }

 private:
  test::TempDir dir_;
};

}  // namespace

TEST(PeftDir, ReadsWhatPeftWrote) {
  const PeftAdapter adapter = read_peft_adapter(golden("dora"));
  EXPECT_EQ(adapter.config.base_model, "tests/golden/model/tiny_tied");
  EXPECT_EQ(adapter.config.rank, 4);
  EXPECT_EQ(adapter.config.alpha, 10);
  EXPECT_TRUE(adapter.config.use_dora);
  EXPECT_TRUE(adapter.config.targets.target_regex.has_value());
  EXPECT_EQ(adapter.config.targets.modules_to_save,
            std::vector<std::string>{"deepstack_merger_list.0.norm"});
  for (const TensorEntry& entry : adapter.tensors)
    EXPECT_EQ(entry.name.find("model."), 0u) << entry.name;
}

TEST(PeftDir, WritesTheBytesOfPeftsWeightsAndReadsItselfBack) {
  const PeftAdapter adapter = read_peft_adapter(golden("dora"));
  test::TempDir dir;
  write_peft_adapter(dir.path(), adapter);
  EXPECT_EQ(read_file(dir.file("adapter_model.safetensors")),
            read_file(golden("dora/adapter_model.safetensors")));
  const PeftAdapter again = read_peft_adapter(dir.path());
  EXPECT_EQ(again.config.targets.target_regex, adapter.config.targets.target_regex);
  EXPECT_EQ(again.config.alpha, adapter.config.alpha);
  EXPECT_EQ(again.config.base_model, adapter.config.base_model);
}

TEST(PeftDir, WritesTheKeysOfPeftAndNoOthers) {
  test::TempDir dir;
  PeftAdapter adapter = read_peft_adapter(golden("dora_dropout"));
  adapter.config.base_model = "modèle";
  write_peft_adapter(dir.path(), adapter);
  const std::string text = read_file(dir.file("adapter_config.json"));
  EXPECT_EQ(text.back(), '}');
  EXPECT_NE(text.find("\n  \"base_model_name_or_path\": \"mod\\u00e8le\",\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\"lora_alpha\": 10,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"lora_dropout\": 0.1,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"alpha_pattern\": {},"), std::string::npos) << text;
  const Json ours = parse_json(text, "ours");
  const Json theirs = read_json_file(golden("dora_dropout/adapter_config.json"));
  std::string last;
  for (const auto& member : ours.items()) {
    EXPECT_LT(last, member.key());
    last = member.key();
    ASSERT_TRUE(theirs.contains(member.key())) << member.key();
    if (member.key() == "base_model_name_or_path") continue;
    EXPECT_EQ(member.value(), theirs[member.key()]) << member.key();
  }
}

TEST(PeftDir, ADirectoryWithoutAnAdapterIsAConfigurationError) {
  test::TempDir dir;
  const UserError error = test::catch_user_error([&] { read_peft_adapter(dir.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(
      test::catch_user_error([&] { read_peft_adapter(dir.file("absent")); }).problems()[0].error,
      "the adapter does not exist");
  const AdapterCopy copy;
  std::filesystem::remove(copy.dir().file("adapter_model.safetensors"));
  EXPECT_EQ(copy.refused().kind(), ErrorKind::kData);
  copy.dir().write("adapter_model.bin", "x");
  EXPECT_NE(copy.refused().problems()[0].what.find("pickle"), std::string::npos);
}

TEST(PeftDir, AnAdapterThatNamesNoBaseModelSaysSo) {
  for (const Json& nothing : {Json(nullptr), Json("")}) {
    const AdapterCopy copy;
    copy.set("base_model_name_or_path", nothing);
    const PeftAdapter adapter = read_peft_adapter(copy.dir().path());
    const UserError error =
        test::catch_user_error([&] { named_base_model(adapter, copy.dir().path()); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_EQ(error.problems()[0].where, copy.dir().file("adapter_config.json"));
    EXPECT_NE(error.problems()[0].fix.find("--adapter"), std::string::npos);
  }
}

TEST(PeftDir, KeepsTheLayersThatTheTargetsAreRestrictedTo) {
  const AdapterCopy copy;
  const test::TempDir dir;
  for (const auto& [layers, pattern] :
       std::vector<std::pair<Json, Json>>{{3, "layers"}, {{3, 5}, {"layers"}}}) {
    copy.set("layers_to_transform", layers);
    copy.set("layers_pattern", pattern);
    write_peft_adapter(dir.path(), read_peft_adapter(copy.dir().path()));
    const PeftTargets targets = read_peft_adapter(dir.path()).config.targets;
    EXPECT_EQ(targets.layers_to_transform.front(), 3);
    EXPECT_EQ(targets.layers_pattern, std::vector<std::string>{"layers"});
  }
}

TEST(PeftDir, SettingsThatWouldChangeTheNumbersAreRefusedByName) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"peft_type", "IA3"},
                                                 {"bias", "all"},
                                                 {"lora_bias", true},
                                                 {"rank_pattern", {{"q_proj", 8}}},
                                                 {"alpha_pattern", {{"q_proj", 8}}},
                                                 {"init_lora_weights", "pissa"},
                                                 {"use_qalora", true},
                                                 {"use_rslora", true},
                                                 {"target_parameters", {"a.b"}},
                                                 {"invented_next_year", {{"x", 1}}}}) {
    const AdapterCopy copy;
    copy.set(key, value);
    const UserError error = copy.refused();
    EXPECT_EQ(error.kind(), ErrorKind::kData) << key;
    const Problem& problem = error.problems()[0];
    EXPECT_NE((problem.error + problem.what).find(key), std::string::npos) << problem.error;
  }
}

TEST(PeftDir, ValuesOfTheWrongTypeAreRefused) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"r", 0},
                                                 {"r", "8"},
                                                 {"lora_alpha", Json::array()},
                                                 {"use_dora", "yes"},
                                                 {"target_modules", 3},
                                                 {"modules_to_save", {1}}}) {
    const AdapterCopy copy;
    copy.set(key, value);
    EXPECT_EQ(copy.refused().kind(), ErrorKind::kData) << key;
  }
  const AdapterCopy copy;
  copy.dir().write("adapter_config.json", "[]");
  EXPECT_EQ(copy.refused().kind(), ErrorKind::kData);
}

TEST(PeftDir, AcceptsDisabledAndDescriptiveSettings) {
  const AdapterCopy copy;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"invented_next_year", nullptr},
                                                 {"another", false},
                                                 {"lora_dtype", "float32"},
                                                 {"lorap_emb_lr", 1e-6},
                                                 {"peft_version", "9"}}) {
    copy.set(key, value);
  }
  EXPECT_NO_THROW(read_peft_adapter(copy.dir().path()));
}

TEST(PeftDir, TensorsWithoutPeftsPrefixAreUnknown) {
  const AdapterCopy copy;
  write_safetensors(copy.dir().file("adapter_model.safetensors"),
                    {{"lora_A.weight", at::zeros({4, 4})}});
  EXPECT_NE(copy.refused().problems()[0].error.find("lora_A.weight"), std::string::npos);
}

TEST(PeftDir, AnAdapterIsNotAModelAndItsErrorSaysHowToMakeOne) {
  EXPECT_TRUE(is_adapter_dir(golden("dora")));
  EXPECT_FALSE(is_adapter_dir(test::source_path("tests/golden/model/tiny_tied")));
  const UserError error = test::catch_user_error([&] { require_model_dir(golden("dora")); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].fix.find("rematch merge"), std::string::npos);
}

}  // namespace rematch
