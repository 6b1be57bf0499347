#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/lora_oracle_cases.h"
#include "model/merge_adapter.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

test::ProcessResult run_script(const std::string& arguments,
                               const std::string& script = "lora.py") {
  return test::run_command(fmt::format("OMP_NUM_THREADS=1 {} {} {}",
                                       test::source_path(".venv/bin/python"),
                                       test::source_path("dev/goldens/" + script), arguments));
}

bool has_peft() {
  static const std::string python = test::source_path(".venv/bin/python");
  static const bool found =
      std::filesystem::exists(python) &&
      test::run_command(python + " -c 'import torch, transformers, safetensors, peft'").exit_code ==
          0;
  return found;
}

#define SKIP_WITHOUT_PEFT() \
  if (!has_peft()) GTEST_SKIP() << "the .venv of this checkout has no peft"

// Logits of our model as answers for the script's `check`.
void write_answers(const std::string& path, const at::Tensor& logits, const RowInput& row) {
  write_safetensors(
      path, {{"logits", logits.detach()}, {"token_ids", at::tensor(row.token_ids, at::kLong)}});
}

}  // namespace

TEST(LoraOracle, PeftsAdaptersOnEveryLinearGiveItsLogitsGradientsAndMergedWeights) {
  SKIP_WITHOUT_PEFT();
  test::TempDir dir;
  const test::ProcessResult made = run_script(fmt::format("live {} 300", dir.path()));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"lora", "dora", "lora_dropout", "dora_dropout"}) {
    SCOPED_TRACE(name);
    test::expect_equals_peft(dir.file("base"), dir.file(name),
                             std::string(name).find("dropout") != std::string::npos);
  }
}

TEST(LoraOracle, PeftLoadsOurAdaptersWithoutWarningsAndGivesOurLogits) {
  SKIP_WITHOUT_PEFT();
  struct Case {
    bool use_dora;
    AdapterTargets targets;
  };
  AdapterTargets regex, list, saved, frozen;
  regex.target_regex = R"(.*(layers\.(1|2)\.self_attn\.\w+_proj|merger.*linear_fc1))";
  list.target_modules = {"q_proj", "attn.proj", "linear_fc2"};
  saved.modules_to_save = {"visual.merger", "norm1"};
  frozen.is_frozen = [](const std::string& name) { return name.find("model.visual.") == 0; };
  for (const Case& one : {Case{true, {}}, Case{false, {}}, Case{true, regex}, Case{false, list},
                          Case{true, saved}, Case{true, frozen}}) {
    const auto model = Model::load(test::tiny_tied(), {});
    std::vector<std::string> names;
    for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
    const LoraSettings lora{.rank = 3, .alpha = 5, .dropout = 0.05, .use_dora = one.use_dora};
    const auto adapter =
        Adapter::create(*model, select_targets(model->description(), names, one.targets),
                        {.lora = lora, .base_model = test::tiny_tied()});
    at::manual_seed(3);
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : adapter->parameters()) {
      if (parameter.name.find("lora_B") != std::string::npos)
        at::Tensor(parameter.tensor).normal_(0, 0.1);
      const bool scales = parameter.name.find("magnitude") != std::string::npos ||
                          parameter.name.find("norm") != std::string::npos;
      if (scales) at::Tensor(parameter.tensor).mul_(1.2);
    }
    test::TempDir dir;
    write_peft_adapter(dir.path(), adapter->files());
    write_answers(dir.file("answers.safetensors"), test::recipe_logits(*model),
                  test::recipe_row(model->description()));
    const test::ProcessResult checked = run_script(
        fmt::format("check {0} {1} {1}/answers.safetensors", test::tiny_tied(), dir.path()));
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  }
}

TEST(LoraOracle, PeftsTrainedTokensOnTiedAndUntiedWeightsGiveItsLogitsGradientsAndMergedWeights) {
  SKIP_WITHOUT_PEFT();
  test::TempDir dir;
  const test::ProcessResult made = run_script(fmt::format("tokens {} 20", dir.path()));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"tied.rows", "tied.saved", "tied.apart", "untied.rows", "untied.saved",
                           "untied.embedding"}) {
    SCOPED_TRACE(name);
    const std::string base = dir.file(std::string(name).substr(0, std::string(name).find('.'))),
                      adapter = dir.file(name);
    const bool is_apart = std::string(name).ends_with("apart");
    if (!is_apart) test::expect_equals_peft(base, adapter, false);
    const MergedAdapter merged = merge_adapter(
        {.adapter_dir = adapter, .base_dir = base, .output_dir = adapter + ".merged", .dtype = {}});
    EXPECT_EQ(merged.untied, is_apart);
    const test::ProcessResult checked =
        run_script(fmt::format("merged {0}.merged {0}.answers.safetensors", adapter));
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  }
}

TEST(LoraOracle, PeftLoadsOurTrainedTokensOnTiedAndUntiedWeights) {
  SKIP_WITHOUT_PEFT();
  AdapterTargets rows, saved;
  for (int64_t id = 368; id < 1368; ++id) rows.token_ids.push_back(id);
  rows.target_modules = saved.target_modules = {"q_proj"};
  saved.modules_to_save = {"embed_tokens", "lm_head"};
  test::CheckpointCopy untied(test::tiny_tied());
  untied.tensor("lm_head.weight") =
      untied.tensor("model.language_model.embed_tokens.weight").flip(1).contiguous();
  untied.write_weights();
  untied.edit_config([](Json& config) { config["tie_word_embeddings"] = false; });
  for (const std::string& base : {test::tiny_tied(), untied.path()}) {
    for (const AdapterTargets& targets : {rows, saved}) {
      const auto model = Model::load(base, {});
      std::vector<std::string> names;
      for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
      const LoraSettings lora{.rank = 3, .alpha = 5, .dropout = 0};
      const auto adapter =
          Adapter::create(*model, select_targets(model->description(), names, targets),
                          {.lora = lora, .base_model = base});
      at::manual_seed(3);
      const at::NoGradGuard no_grad;
      for (const NamedParameter& parameter : adapter->parameters())
        at::Tensor(parameter.tensor).add_(at::randn_like(parameter.tensor), 0.1);
      test::TempDir dir;
      write_peft_adapter(dir.path(), adapter->files());
      write_answers(dir.file("answers.safetensors"), test::recipe_logits(*model),
                    test::recipe_row(model->description()));
      const test::ProcessResult checked =
          run_script(fmt::format("check {0} {1} {1}/answers.safetensors", base, dir.path()));
      EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
    }
  }
}

namespace {

// DoRA on every Linear of `all-linear`, and token rows. @param script_name  its `check` compares
void expect_peft_gives_our_logits(const std::string& model_dir, const std::string& script_name) {
  const auto model = Model::load(model_dir, {});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  AdapterTargets targets;
  targets.token_ids = {5, 16, 27};
  const LoraSettings lora{.rank = 3, .alpha = 5, .dropout = 0, .use_dora = true};
  const auto adapter = Adapter::create(*model, select_targets(model->description(), names, targets),
                                       {.lora = lora, .base_model = model_dir});
  at::manual_seed(3);
  const at::NoGradGuard no_grad;
  for (const NamedParameter& parameter : adapter->parameters())
    at::Tensor(parameter.tensor).add_(at::randn_like(parameter.tensor), 0.05);
  test::TempDir dir;
  write_peft_adapter(dir.path(), adapter->files());
  const test::OracleAnswers cases(model_dir);
  const RowInput row = cases.row("two_images");
  const VisionFeatures features =
      model->encode_images(cases.images("two_images", model->description()));
  write_answers(dir.file("answers.safetensors"), model->head_KV(model->forward_TH(row, features)),
                row);
  const std::string arguments =
      fmt::format("check {0} {1} {1}/answers.safetensors", model_dir, dir.path());
  const test::ProcessResult checked = run_script(arguments, script_name);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

}  // namespace

TEST(LoraOracle, PeftLoadsAnAdapterOfATowerWithWindowsAndGivesOurLogits) {
  SKIP_WITHOUT_PEFT();
  expect_peft_gives_our_logits(test::windows_tied(), "model_qwen2_5vl.py");
}

TEST(LoraOracle, PeftLoadsAnAdapterOfTheDeltaRuleAndGivesOurLogits) {
  SKIP_WITHOUT_PEFT();
  expect_peft_gives_our_logits(test::delta_tied(), "model_qwen3_5.py");
}

TEST(LoraOracle, TransformersLoadsTheMergedCheckpointAndGivesOurLogits) {
  SKIP_WITHOUT_PEFT();
  test::TempDir dir;
  const std::string adapter_dir = test::source_path("tests/golden/lora/dora");
  merge_adapter({.adapter_dir = adapter_dir,
                 .base_dir = test::tiny_tied(),
                 .output_dir = dir.file("out"),
                 .dtype = at::kFloat});
  const auto model = Model::load(test::tiny_tied(), {});
  Adapter::load(*model, read_peft_adapter(adapter_dir), adapter_dir);
  write_answers(dir.file("answers.safetensors"), test::recipe_logits(*model),
                test::recipe_row(model->description()));
  const test::ProcessResult checked =
      run_script(fmt::format("merged {} {}", dir.file("out"), dir.file("answers.safetensors")));
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

}  // namespace rematch
