#include "model/token_rows.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "model/adapter.h"
#include "model/add_coord_tokens.h"
#include "model/coord_rows.h"
#include "model/merge_adapter.h"
#include "model/stock_checkpoint.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::kEmbedding;
using test::kHead;

const std::vector<int64_t> kTokens{9, 12, 30};

AdapterSelection select_of(const Model& model, const AdapterTargets& targets) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  return select_targets(model.description(), names, targets);
}

AdapterTargets rows_of(const std::vector<int64_t>& token_ids) {
  AdapterTargets targets;
  targets.target_modules = {"q_proj"};
  targets.token_ids = token_ids;
  return targets;
}

AdapterTargets saved(std::vector<std::string> modules) {
  AdapterTargets targets;
  targets.target_modules = {"q_proj"};
  targets.modules_to_save = std::move(modules);
  return targets;
}

std::shared_ptr<Adapter> attach(Model& model, const AdapterTargets& targets) {
  const LoraSettings lora{.rank = 2, .alpha = 4, .dropout = 0};
  return Adapter::create(model, select_of(model, targets),
                         {.lora = lora, .base_model = test::tiny_tied()});
}

at::Tensor logits(const Model& model) {
  const RowInput row{.token_ids = {9, 5, 12, 6, 30, 9}, .segment_lens = {6}, .grids = {}};
  return model.head_KV(model.forward_TH(row, {}));
}

void move_all(const Adapter& adapter) {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  for (const NamedParameter& parameter : adapter.parameters())
    at::Tensor(parameter.tensor).add_(at::randn_like(parameter.tensor), 0.1);
}

double most(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

std::string first_error(const AdapterTargets& targets) {
  const auto model = Model::load(test::tiny_tied(), {});
  return test::catch_user_error([&] { select_of(*model, targets); }).problems()[0].error;
}

}  // namespace

TEST(TokenRows, NewRowsChangeNothingAndOnlyTheyAndTheAdaptersAreTrained) {
  for (const std::string& base : {test::tiny_tied(), test::tiny_untied()}) {
    const auto model = Model::load(base, {});
    const at::Tensor before = logits(*model);
    const auto adapter = attach(*model, rows_of(kTokens));
    const at::Tensor after = logits(*model);
    EXPECT_LT(most(before - after), 1e-5 * most(before));
    torch::autograd::backward({after.square().sum()}, {});
    int num_rows = 0;
    for (const NamedParameter& parameter : adapter->parameters()) {
      if (parameter.name.find("trainable_tokens_delta") == std::string::npos) continue;
      ++num_rows;
      EXPECT_EQ(parameter.tensor.size(0), 3);
      EXPECT_GT(most(parameter.tensor.grad()), 0.0) << parameter.name;
    }
    EXPECT_EQ(num_rows, model->tied() ? 1 : 2);
    EXPECT_FALSE(model->parameter(kEmbedding).requires_grad());
  }
}

TEST(TokenRows, AMergedCheckpointAndAReloadedAdapterGiveTheSameLogits) {
  for (const std::string& base : {test::tiny_tied(), test::tiny_untied()}) {
    for (const AdapterTargets& targets : {rows_of(kTokens), saved({"embed_tokens", "lm_head"})}) {
      test::TempDir dir;
      const auto model = Model::load(base, {});
      const auto adapter = attach(*model, targets);
      move_all(*adapter);
      const at::Tensor expected = logits(*model);
      dir.write("adapter/placeholder", "");
      write_peft_adapter(dir.file("adapter"), adapter->files());
      const auto again = Model::load(base, {});
      Adapter::load(*again, read_peft_adapter(dir.file("adapter")), "adapter");
      EXPECT_EQ(most(logits(*again) - expected), 0.0);
      const MergedAdapter merged = merge_adapter({.adapter_dir = dir.file("adapter"),
                                                  .base_dir = base,
                                                  .output_dir = dir.file("merged"),
                                                  .dtype = at::kFloat});
      EXPECT_EQ(merged.num_rows, targets.token_ids.empty() ? 0 : 3);
      EXPECT_FALSE(merged.untied);
      const auto plain = Model::load(dir.file("merged"), {});
      EXPECT_EQ(plain->tied(), model->tied());
      EXPECT_LT(most(logits(*plain) - expected), 1e-5 * most(expected));
    }
  }
}

TEST(TokenRows, AResumedRunAcceptsOnlyTheSameTokens) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto adapter = attach(*model, rows_of(kTokens));
  move_all(*adapter);
  const auto other = Model::load(test::tiny_tied(), {});
  attach(*other, rows_of(kTokens))->set_values(adapter->files(), "checkpoint-1");
  EXPECT_EQ(most(logits(*other) - logits(*model)), 0.0);
  const auto third = Model::load(test::tiny_tied(), {});
  const auto different = attach(*third, rows_of({9, 12, 31}));
  const UserError error =
      test::catch_user_error([&] { different->set_values(adapter->files(), "checkpoint-1"); });
  EXPECT_NE(error.problems()[0].what.find("trainable_token_indices"), std::string::npos);
  const auto full = Model::load(test::tiny_tied(), {});
  const auto embedding = attach(*full, saved({"embed_tokens"}));
  const PeftAdapter files = embedding->files();
  embedding->set_values(files, "checkpoint-1");  // the head's copy is not a second parameter
}

TEST(TokenRows, TiedWeightsAreSavedUnderBothNamesAsPeftDoes) {
  const auto model = Model::load(test::tiny_tied(), {});
  for (const char* name : {"embed_tokens", "lm_head"}) {
    const AdapterSelection selection = select_of(*model, saved({name}));
    EXPECT_EQ(selection.saved_parameters, std::vector<std::string>{kEmbedding});
    EXPECT_EQ(selection.targets.modules_to_save,
              std::vector<std::string>{"model.language_model.embed_tokens"});
    EXPECT_TRUE(selection.targets.ensure_weight_tying);
  }
  const PeftAdapter files = attach(*model, saved({"embed_tokens"}))->files();
  int num_copies = 0;
  for (const TensorEntry& entry : files.tensors)
    num_copies += entry.name == kEmbedding || entry.name == kHead ? 1 : 0;
  EXPECT_EQ(num_copies, 2);
}

TEST(TokenRows, ContradictionsAreConfigurationErrors) {
  AdapterTargets twice = saved({"embed_tokens"});
  twice.token_ids = kTokens;
  EXPECT_NE(first_error(twice).find("two ways"), std::string::npos);
  AdapterTargets frozen = rows_of(kTokens);
  frozen.target_modules = {"attn.proj"};
  frozen.is_frozen = [](const std::string& name) {
    return name.find("visual") == std::string::npos;
  };
  EXPECT_NE(first_error(frozen).find("frozen"), std::string::npos);
  EXPECT_NE(first_error(rows_of({5, 1368})).find("vocabulary"), std::string::npos);
  EXPECT_NE(first_error(saved({"language_model"})).find("embedding"), std::string::npos);
}

TEST(CoordRows, DistinguishesNewRowsFromTrainedOnes) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("out"));
  std::vector<int64_t> ids;
  for (int64_t id = 368; id < 1368; ++id) ids.push_back(id);
  EXPECT_TRUE(rows_look_untrained(Model::load(dir.file("out"), {})->parameter(kEmbedding), ids));
  EXPECT_FALSE(rows_look_untrained(Model::load(test::tiny_tied(), {})->parameter(kEmbedding), ids));
  EXPECT_TRUE(rows_look_untrained(at::cat({at::randn({368, 8}), at::zeros({1000, 8})}), ids));
}

TEST(AddCoordTokens, UntiesOnRequest) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  EXPECT_TRUE(add_coord_tokens(stock.path(), dir.file("out"), true).untied);
  const auto model = Model::load(dir.file("out"), {});
  EXPECT_FALSE(model->tied());
  EXPECT_TRUE(at::equal(model->parameter(kEmbedding), model->parameter(kHead)));
  EXPECT_EQ(read_json_file(dir.file("out/config.json"))["tie_word_embeddings"], false);
  test::TempDir again;
  test::CheckpointCopy untied = test::stock_checkpoint(400);
  untied.tensor(kHead) = untied.tensor(kEmbedding) * 2;
  untied.write_weights();
  untied.edit_config([](Json& config) { config["tie_word_embeddings"] = false; });
  EXPECT_FALSE(add_coord_tokens(untied.path(), again.file("out"), true).untied);
  EXPECT_FALSE(at::equal(HfDir::open(again.file("out"))->tensor(kHead),
                         HfDir::open(again.file("out"))->tensor(kEmbedding)));
}

}  // namespace rematch
