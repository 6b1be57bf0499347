#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/add_coord_tokens.h"
#include "model/oracle_cases.h"
#include "model/save.h"
#include "model/stock_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

// Runs Python of the checkout's .venv; `code` may use torch and transformers.
test::ProcessResult run_python(const std::string& arguments, const std::string& code = "") {
  return test::run_command(
      "OMP_NUM_THREADS=1 " + test::source_path(".venv/bin/python") + " " + arguments, code);
}

bool has_transformers() {
  static const bool found =
      std::filesystem::exists(test::source_path(".venv/bin/python")) &&
      run_python("-", "import torch, transformers, safetensors").exit_code == 0;
  return found;
}

#define SKIP_WITHOUT_TRANSFORMERS() \
  if (!has_transformers()) GTEST_SKIP() << "the .venv of this checkout has no transformers"

TEST(Qwen3VLOracle, FiveRandomCheckpointsGiveTransformersLogitsAndGradients) {
  SKIP_WITHOUT_TRANSFORMERS();
  test::TempDir dir;
  const std::string script = test::source_path("dev/goldens/model_tiny.py");
  const test::ProcessResult made = run_python(fmt::format("{} live {} 100", script, dir.path()));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"tied", "untied", "sharded", "deep", "no_deepstack"}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(std::filesystem::exists(dir.file(name)));
    test::expect_equals_transformers(dir.file(name));
  }
  EXPECT_TRUE(std::filesystem::exists(dir.file("sharded/model.safetensors.index.json")));
}

TEST(Qwen3VLOracle, TransformersLoadsWhatWeSaveWithoutAWarning) {
  SKIP_WITHOUT_TRANSFORMERS();
  test::TempDir dir;
  const auto model = Model::load(test::tiny_tied(), {});
  model->parameter("model.language_model.norm.weight").mul_(2);
  save_hf_model(test::tiny_tied(), *model, dir.path(), {.max_shard_bytes = 200'000});
  const test::ProcessResult result = run_python("- " + dir.path(), R"(
import sys, torch
from transformers import Qwen3VLForConditionalGeneration
model, info = Qwen3VLForConditionalGeneration.from_pretrained(sys.argv[1], output_loading_info=True)
assert model.dtype == torch.float32, model.dtype
assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
print(model(torch.tensor([[5, 6, 7]])).logits[0, -1, :3].tolist())
)");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const at::Tensor logits = model->head_KV(
      model->forward_TH({.token_ids = {5, 6, 7}, .segment_lens = {3}, .grids = {}}, {}))[2];
  const Json found = Json::parse(result.out);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(found[static_cast<size_t>(i)].get<double>(), logits[i].item<double>(),
                1e-4 * logits.abs().max().item<double>());
  }
}

TEST(Qwen25VLOracle, FiveRandomCheckpointsGiveTransformersLogitsAndGradients) {
  SKIP_WITHOUT_TRANSFORMERS();
  test::TempDir dir;
  const std::string script = test::source_path("dev/goldens/model_qwen2_5vl.py");
  const test::ProcessResult made = run_python(fmt::format("{} live {} 100", script, dir.path()));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"tied", "untied", "sharded", "nested", "flat"}) {
    SCOPED_TRACE(name);
    test::expect_equals_transformers(dir.file(name));
  }
}

TEST(Qwen25VLOracle, TransformersLoadsWhatWeSaveUnderTheNamesItWrites) {
  SKIP_WITHOUT_TRANSFORMERS();
  test::TempDir dir;
  const auto model = Model::load(test::windows_tied(), {});
  model->parameter("model.language_model.norm.weight").mul_(2);
  save_hf_model(test::windows_tied(), *model, dir.path());
  EXPECT_EQ(HfDir::open(dir.path())->names(), HfDir::open(test::windows_tied())->names());
  const test::ProcessResult result = run_python("- " + dir.path(), R"(
import sys, torch
from transformers import Qwen2_5_VLForConditionalGeneration
Model = Qwen2_5_VLForConditionalGeneration
model, info = Model.from_pretrained(sys.argv[1], output_loading_info=True)
assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
print(model(torch.tensor([[5, 6, 7]])).logits[0, -1, :3].tolist())
)");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const at::Tensor logits = model->head_KV(
      model->forward_TH({.token_ids = {5, 6, 7}, .segment_lens = {3}, .grids = {}}, {}))[2];
  const Json found = Json::parse(result.out);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(found[static_cast<size_t>(i)].get<double>(), logits[i].item<double>(),
                1e-4 * logits.abs().max().item<double>());
  }
}

TEST(Qwen35Oracle, FiveRandomCheckpointsGiveTransformersLogitsAndGradients) {
  SKIP_WITHOUT_TRANSFORMERS();
  test::TempDir dir;
  const std::string script = test::source_path("dev/goldens/model_qwen3_5.py");
  const test::ProcessResult made = run_python(fmt::format("{} live {} 100", script, dir.path()));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"tied", "untied", "sharded", "deep", "older"}) {
    SCOPED_TRACE(name);
    test::expect_equals_transformers(dir.file(name));
  }
}

TEST(Qwen35Oracle, TransformersLoadsWhatWeSave) {
  SKIP_WITHOUT_TRANSFORMERS();
  test::TempDir dir;
  const auto model = Model::load(test::delta_tied(), {});
  model->parameter("model.language_model.norm.weight").mul_(2);
  save_hf_model(test::delta_tied(), *model, dir.path());
  const test::ProcessResult result = run_python("- " + dir.path(), R"(
import sys, torch
from transformers import AutoModelForImageTextToText
model, info = AutoModelForImageTextToText.from_pretrained(sys.argv[1], output_loading_info=True)
assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
print(model(torch.tensor([[5, 6, 7]])).logits[0, -1, :3].tolist())
)");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const at::Tensor logits = model->head_KV(
      model->forward_TH({.token_ids = {5, 6, 7}, .segment_lens = {3}, .grids = {}}, {}))[2];
  const Json found = Json::parse(result.out);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(found[static_cast<size_t>(i)].get<double>(), logits[i].item<double>(),
                1e-5 * logits.abs().max().item<double>());
  }
}

TEST(AddCoordTokensOracle, TransformersLoadsTheResult) {
  SKIP_WITHOUT_TRANSFORMERS();
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("out"));
  const test::ProcessResult result =
      run_python(fmt::format("- {} {}", stock.path(), dir.file("out")), R"(
import sys, torch
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration
Model = Qwen3VLForConditionalGeneration
old, new = (Model.from_pretrained(p, dtype=torch.float32) for p in sys.argv[1:])
ids = torch.tensor([[5, 6, 7]])
assert new.config.text_config.vocab_size == 1368 and new.lm_head.weight.shape[0] == 1368
assert new.lm_head.weight is new.model.language_model.embed_tokens.weight
assert (old(ids).logits[..., :368] - new(ids).logits[..., :368]).abs().max() < 1e-5
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
assert len(tokenizer) == 1368, len(tokenizer)
coded = tokenizer("a<|coord_0|><|coord_999|>b", add_special_tokens=False).input_ids
assert coded[1:3] == [368, 1367], coded
assert tokenizer.decode(coded, skip_special_tokens=True) == "a<|coord_0|><|coord_999|>b"
)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace rematch
