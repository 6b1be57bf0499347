#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "model/adapter_targets.h"
#include "model/adapter_tensors.h"
#include "model/lora_oracle_cases.h"
#include "model/merge_adapter.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

std::string golden_adapter(const std::string& name) {
  return test::source_path("tests/golden/lora/" + name);
}

PeftAdapter dora() { return read_peft_adapter(golden_adapter("dora")); }

TensorEntry& entry_of(PeftAdapter& adapter, const std::string& part) {
  for (TensorEntry& entry : adapter.tensors) {
    if (entry.name.find(part) != std::string::npos) return entry;
  }
  throw std::runtime_error(part);
}

UserError refused_files(const PeftAdapter& adapter, const std::string& base = test::tiny_tied()) {
  return test::catch_user_error(
      [&] { Adapter::load(*Model::load(base, {}), adapter, "some/adapter"); });
}

}  // namespace

TEST(AdapterFiles, AnAdapterOfAnotherBaseModelIsRefusedWithTheShapes) {
  const UserError error = refused_files(dora(), test::tiny_untied());
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const Problem& problem = error.problems()[0];
  EXPECT_EQ(problem.where, "some/adapter");
  EXPECT_NE(problem.fix.find("tests/golden/model/tiny_tied"), std::string::npos);
}

TEST(AdapterFiles, UnknownTensorsWrongShapesAndMissingPartsAreRefused) {
  PeftAdapter unknown = dora();
  unknown.tensors.push_back(
      {"model.language_model.layers.2.mlp.down_proj.lora_C.weight", at::zeros({1})});
  EXPECT_NE(refused_files(unknown).problems()[0].error.find("lora_C"), std::string::npos);
  PeftAdapter nowhere = dora();
  nowhere.tensors.push_back(
      {"model.language_model.layers.9.mlp.down_proj.lora_A.weight", at::zeros({4, 64})});
  EXPECT_NE(refused_files(nowhere).problems()[0].what.find("layers.9"), std::string::npos);
  PeftAdapter embedding = dora();
  embedding.tensors.push_back(
      {"model.language_model.embed_tokens.lora_A.weight", at::zeros({4, 32})});
  EXPECT_NE(refused_files(embedding).problems()[0].error.find("no Linear"), std::string::npos);
  EXPECT_NE(refused_files(embedding).problems()[0].fix.find("merge it with PEFT"),
            std::string::npos);
  PeftAdapter renamed = dora();
  for (TensorEntry& entry : renamed.tensors) {
    if (const size_t at = entry.name.find("language_model."); at != std::string::npos)
      entry.name.erase(at, 15);
  }
  EXPECT_NE(refused_files(renamed).problems()[0].fix.find(
                "write model.language_model.layers for model.layers"),
            std::string::npos);
  PeftAdapter misshapen = dora();
  TensorEntry& a = entry_of(misshapen, "lora_A");
  a.tensor = a.tensor.narrow(0, 0, 3);
  EXPECT_NE(refused_files(misshapen).problems()[0].what.find("[3, "), std::string::npos);
  PeftAdapter integers = dora();
  entry_of(integers, "lora_B").tensor = entry_of(integers, "lora_B").tensor.to(at::kLong);
  EXPECT_NE(refused_files(integers).problems()[0].error.find("dtype"), std::string::npos);
  for (const char* part : {".lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector"}) {
    PeftAdapter missing = dora();
    const std::string name = entry_of(missing, part).name;
    std::erase_if(missing.tensors, [&](const TensorEntry& entry) { return entry.name == name; });
    EXPECT_NE(refused_files(missing).problems()[0].error.find("incomplete"), std::string::npos)
        << part;
  }
  PeftAdapter absent = dora();
  const std::string down = "model.language_model.layers.2.mlp.down_proj";
  absent.config.targets.target_modules = {down};
  std::erase_if(absent.tensors,
                [&](const TensorEntry& entry) { return entry.name.starts_with(down); });
  EXPECT_NE(refused_files(absent).problems()[0].what.find("target_modules"), std::string::npos);
  PeftAdapter plain = dora();
  plain.config.use_dora = false;
  EXPECT_NE(refused_files(plain).problems()[0].what.find("use_dora"), std::string::npos);
  PeftAdapter unsaved = dora();
  unsaved.config.targets.modules_to_save = {};
  EXPECT_NE(refused_files(unsaved).problems()[0].what.find("modules_to_save"), std::string::npos);
  PeftAdapter empty = dora();
  empty.tensors.clear();
  EXPECT_EQ(refused_files(empty).kind(), ErrorKind::kData);
  PeftAdapter head = dora();
  head.tensors.push_back({"model.language_model.embed_tokens.weight", at::zeros({1368, 32})});
  head.config.targets.modules_to_save.push_back("embed_tokens");
  EXPECT_NE(refused_files(head).problems()[0].error.find("head"), std::string::npos);
}

TEST(AdapterFiles, TensorsThatPeftWouldIgnoreAreRefused) {
  const auto with = [](std::vector<std::string> modules, std::vector<int> layers,
                       std::vector<std::string> lists = {}) {
    PeftAdapter adapter = dora();
    PeftTargets& targets = adapter.config.targets;
    targets.target_regex = std::nullopt;
    targets.target_modules = std::move(modules);
    targets.layers_to_transform = std::move(layers);
    targets.layers_pattern = std::move(lists);
    return adapter;
  };
  const std::vector<std::string> all{"q_proj",    "k_proj",     "v_proj",    "o_proj",
                                     "gate_proj", "up_proj",    "qkv",       "proj",
                                     "down_proj", "linear_fc1", "linear_fc2"};
  EXPECT_NO_THROW(Adapter::load(*Model::load(test::tiny_tied(), {}), with(all, {}), "some"));
  const std::string q = "model.language_model.layers.2.self_attn.q_proj";
  for (const PeftAdapter& adapter :
       {with({all.begin() + 1, all.end()}, {}), with(all, {0, 1}), with(all, {2}, {"blocks"})}) {
    const Problem problem = refused_files(adapter).problems()[0];
    EXPECT_NE(problem.error.find("model."), std::string::npos);
    EXPECT_EQ(problem.where, "some/adapter/adapter_config.json");
    EXPECT_NE(problem.what.find("PEFT would ignore"), std::string::npos);
  }
  EXPECT_NE(refused_files(with({all.begin() + 1, all.end()}, {})).problems()[0].error.find(q),
            std::string::npos);
}

TEST(AdapterFiles, SavesWhatItLoaded) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto adapter = Adapter::load(*model, dora(), "golden");
  test::TempDir dir;
  write_peft_adapter(dir.path(), adapter->files());
  EXPECT_EQ(read_file(dir.file("adapter_model.safetensors")),
            read_file(golden_adapter("dora/adapter_model.safetensors")));
}

TEST(MergeAdapter, TheMergedCheckpointGivesTheAdaptersLogits) {
  for (const char* name : {"lora", "dora"}) {
    test::TempDir dir;
    const MergedAdapter merged = merge_adapter({.adapter_dir = golden_adapter(name),
                                                .base_dir = test::tiny_tied(),
                                                .output_dir = dir.file("out"),
                                                .dtype = at::kFloat});
    EXPECT_EQ(merged.num_layers, 14);
    EXPECT_EQ(merged.num_replaced, std::string(name) == "dora" ? 2 : 0);
    const auto base = Model::load(test::tiny_tied(), {});
    Adapter::load(*base, read_peft_adapter(golden_adapter(name)), golden_adapter(name));
    const at::Tensor expected = test::recipe_logits(*base);
    const auto model = Model::load(dir.file("out"), {});
    EXPECT_LT((test::recipe_logits(*model) - expected).abs().max().item<double>(),
              1e-5 * expected.abs().max().item<double>())
        << name;
    for (const char* file : {"tokenizer.json", "preprocessor_config.json", "chat_template.jinja",
                             "generation_config.json"}) {
      EXPECT_EQ(read_file(dir.file("out/") + file), read_file(test::tiny_tied() + "/" + file));
    }
    EXPECT_NE(read_file(dir.file("out/config.json")).find("float32"), std::string::npos);
  }
}

TEST(MergeAdapter, WithoutADtypeKeepsThatOfTheBaseModel) {
  test::TempDir dir;
  merge_adapter({.adapter_dir = golden_adapter("dora"),
                 .base_dir = test::tiny_tied(),
                 .output_dir = dir.file("out"),
                 .dtype = std::nullopt});
  const auto base = HfDir::open(test::tiny_tied());
  const auto merged = HfDir::open(dir.file("out"));
  EXPECT_EQ(merged->names(), base->names());
  EXPECT_EQ(merged->dtype("model.language_model.layers.2.mlp.down_proj.weight"), at::kBFloat16);
  const std::string embedding = "model.language_model.embed_tokens.weight";
  EXPECT_TRUE(at::equal(merged->tensor(embedding), base->tensor(embedding)));
  EXPECT_FALSE(at::equal(merged->tensor("model.visual.merger.linear_fc2.weight"),
                         base->tensor("model.visual.merger.linear_fc2.weight")));
}

// Acceptance (g) of Qwen3.5.
TEST(MergeAdapter, KeepsDtypesAndTensorsOfMultiTokenPrediction) {
  const auto model = Model::load(test::delta_tied(), {.dtype = at::kBFloat16});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter = Adapter::create(*model, select_targets(model->description(), names, {}),
                                       {.lora = {.rank = 2}, .base_model = test::delta_tied()});
  for (const NamedParameter& parameter : adapter->parameters()) {
    const at::NoGradGuard no_grad;
    at::Tensor(parameter.tensor).add_(0.25);
  }
  test::TempDir dir;
  std::filesystem::create_directory(dir.file("adapter"));
  write_peft_adapter(dir.file("adapter"), adapter->files());
  const auto base = HfDir::open(test::delta_tied());
  for (const std::optional<at::ScalarType> dtype :
       {std::optional<at::ScalarType>(), std::optional(at::kBFloat16)}) {
    const std::string output = dir.file(dtype ? "converted" : "plain");
    merge_adapter({.adapter_dir = dir.file("adapter"),
                   .base_dir = test::delta_tied(),
                   .output_dir = output,
                   .dtype = dtype});
    const auto merged = HfDir::open(output);
    ASSERT_EQ(merged->names(), base->names());
    for (const std::string& name : base->names()) {
      EXPECT_EQ(merged->dtype(name), base->dtype(name)) << name;
      if (name.starts_with("mtp.")) {
        EXPECT_TRUE(at::equal(merged->tensor(name), base->tensor(name))) << name;
      }
    }
    const std::string changed = "model.language_model.layers.0.linear_attn.in_proj_qkv.weight";
    EXPECT_FALSE(at::equal(merged->tensor(changed), base->tensor(changed)));
  }
}

TEST(MergeAdapter, RefusesAMissingBaseAnotherBaseAndANonEmptyOutput) {
  test::TempDir dir;
  const auto merge = [&](const std::string& base, const std::string& output) {
    const MergeOptions options{.adapter_dir = golden_adapter("dora"),
                               .base_dir = base,
                               .output_dir = output,
                               .dtype = std::nullopt};
    return test::catch_user_error([&] { merge_adapter(options); });
  };
  dir.write("full/file", "x");
  EXPECT_EQ(merge(test::tiny_tied(), dir.file("full")).kind(), ErrorKind::kConfig);
  EXPECT_EQ(merge(test::tiny_untied(), dir.file("out")).kind(), ErrorKind::kData);
  EXPECT_FALSE(std::filesystem::exists(dir.file("out")));
  // The name in adapter_config.json is relative to the checkout; from elsewhere it leads nowhere.
  PeftAdapter adapter = dora();
  adapter.config.base_model = "no/such/model";
  std::filesystem::create_directory(dir.file("adapter"));
  write_peft_adapter(dir.file("adapter"), adapter);
  const MergeOptions homeless{.adapter_dir = dir.file("adapter"),
                              .base_dir = "",
                              .output_dir = dir.file("out"),
                              .dtype = std::nullopt};
  const UserError error = test::catch_user_error([&] { merge_adapter(homeless); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].fix.find("--model"), std::string::npos);
}

}  // namespace rematch
