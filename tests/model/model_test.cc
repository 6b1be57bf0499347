#include "model/model.h"

#include <gtest/gtest.h>

#include "base/interrupt.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::kEmbedding;
using test::kHead;

RowInput text_row(std::vector<int64_t> token_ids) {
  RowInput row;
  row.segment_lens = {static_cast<int64_t>(token_ids.size())};
  row.token_ids = std::move(token_ids);
  return row;
}

Problem load_problem(const std::string& path) {
  const UserError error = test::catch_user_error([&] { Model::load(path, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  return error.problems()[0];
}

TEST(Qwen3VLTie, ATiedHeadIsNotListed) {
  const auto model = Model::load(test::tiny_tied(), {});
  EXPECT_TRUE(model->tied());
  EXPECT_FALSE(model->parameter(kHead).defined());
  const at::Tensor hidden = at::randn({2, 32});
  EXPECT_TRUE(at::equal(model->head_KV(hidden), at::linear(hidden, model->parameter(kEmbedding))));
}

TEST(Qwen3VLTie, ARedundantEqualHeadStaysTied) {
  test::CheckpointCopy copy(test::tiny_tied());
  copy.tensor(kHead) = copy.tensor(kEmbedding).clone();
  copy.write_weights();
  const auto model = Model::load(copy.path(), {});
  EXPECT_TRUE(model->tied());
  EXPECT_TRUE(model->unused_tensors().empty());
}

TEST(Qwen3VLTie, ADifferentHeadStaysSeparateDespiteTheFlag) {
  test::CheckpointCopy copy(test::tiny_tied());
  copy.tensor(kHead) = copy.tensor(kEmbedding) + 1;
  copy.write_weights();
  const auto model = Model::load(copy.path(), {});
  EXPECT_FALSE(model->tied());
  EXPECT_TRUE(at::equal(model->parameter(kHead), copy.tensor(kHead).to(at::kFloat)));
}

TEST(Qwen3VLTie, ALoneHeadServesBoth) {
  test::CheckpointCopy copy(test::tiny_tied());
  const at::Tensor table = copy.tensor(kEmbedding).clone();
  copy.remove(kEmbedding);
  copy.tensor(kHead) = table;
  copy.write_weights();
  const auto model = Model::load(copy.path(), {});
  EXPECT_TRUE(model->tied());
  EXPECT_TRUE(at::equal(model->parameter(kEmbedding), table.to(at::kFloat)));
}

TEST(Qwen3VLTie, AnUntiedModelNeedsItsHead) {
  test::CheckpointCopy copy(test::tiny_untied());
  copy.remove(kHead);
  copy.write_weights();
  EXPECT_NE(load_problem(copy.path()).error.find(kHead), std::string::npos);
}

TEST(Qwen3VLLoad, NamesAMissingTensorAndItsNeighbours) {
  test::CheckpointCopy copy(test::tiny_tied());
  copy.remove("model.language_model.layers.1.self_attn.k_norm.weight");
  copy.write_weights();
  const Problem problem = load_problem(copy.path());
  EXPECT_NE(problem.error.find("layers.1.self_attn.k_norm.weight"), std::string::npos);
  EXPECT_NE(problem.what.find("k_norm"), std::string::npos);
}

TEST(Qwen3VLLoad, NamesAMisshapenTensorWithBothShapes) {
  test::CheckpointCopy copy(test::tiny_tied());
  copy.tensor("model.visual.merger.norm.weight") = at::ones({96});
  copy.write_weights();
  const Problem problem = load_problem(copy.path());
  EXPECT_NE(problem.error.find("model.visual.merger.norm.weight"), std::string::npos);
  EXPECT_EQ(problem.what, "[96] in the checkpoint, [24] according to config.json");
}

TEST(Qwen3VLLoad, RefusesIntegerWeights) {
  test::CheckpointCopy copy(test::tiny_tied());
  copy.tensor("model.language_model.norm.weight") = at::ones({32}, at::kInt);
  copy.write_weights();
  EXPECT_NE(load_problem(copy.path()).error.find("wrong dtype"), std::string::npos);
}

TEST(Qwen3VLLoad, ListsUnusedTensorsExceptRotaryTables) {
  test::CheckpointCopy copy(test::tiny_tied());
  copy.tensor("model.language_model.layers.9.stray") = at::ones({2});
  copy.tensor("model.visual.rotary_pos_emb.inv_freq") = at::ones({2});
  copy.write_weights();
  EXPECT_EQ(Model::load(copy.path(), {})->unused_tensors(),
            (std::vector<std::string>{"model.language_model.layers.9.stray"}));
}

TEST(Qwen3VLLoad, ParametersAreLeavesWithoutGradientInCheckpointOrder) {
  const auto model = Model::load(test::tiny_untied(), {.dtype = at::kBFloat16});
  EXPECT_EQ(model->parameters().front().name, "model.visual.patch_embed.proj.weight");
  EXPECT_EQ(model->parameters().back().name, kHead);
  for (const NamedParameter& parameter : model->parameters()) {
    EXPECT_TRUE(parameter.tensor.is_leaf());
    EXPECT_FALSE(parameter.tensor.requires_grad());
    EXPECT_EQ(parameter.tensor.scalar_type(), at::kBFloat16);
  }
}

TEST(Qwen3VLForward, Bfloat16StaysNearFloat32) {
  const test::OracleAnswers answers(test::tiny_tied());
  const auto model = Model::load(test::tiny_tied(), {.dtype = at::kBFloat16});
  const RowInput row = answers.row("two_images");
  const at::Tensor logits = model->head_KV(model->forward_TH(
      row, model->encode_images(answers.images("two_images", model->description()))));
  EXPECT_EQ(logits.scalar_type(), at::kBFloat16);
  const at::Tensor wanted = answers.logits("two_images");
  const at::Tensor found = logits.to(at::kFloat).slice(1, 0, INT64_MAX, answers.column_stride());
  EXPECT_LE((found - wanted).norm().item<double>(), 0.05 * wanted.norm().item<double>());
}

TEST(Qwen3VLForward, LookupsGiveThePaddingRowNoGradient) {
  const auto model = Model::load(test::tiny_tied(), {});
  const at::Tensor table = model->parameter(kEmbedding);
  table.requires_grad_(true);
  model->embed(at::tensor({5, 360, 360, 6}, at::kLong)).sum().backward();
  EXPECT_EQ(table.grad()[360].abs().sum().item<float>(), 0.0f);
  EXPECT_EQ(table.grad()[5].sum().item<float>(), 32.0f);
}

TEST(Qwen3VLForward, FrozenParametersBuildNoGraph) {
  const auto model = Model::load(test::tiny_tied(), {});
  EXPECT_FALSE(model->forward_TH(text_row({5, 6, 7}), {}).requires_grad());
}

TEST(Qwen3VLForward, RefusesIdsOutsideTheVocabulary) {
  const auto model = Model::load(test::tiny_tied(), {});
  for (const int64_t id : {int64_t{-1}, int64_t{1368}}) {
    const UserError error =
        test::catch_user_error([&] { model->forward_TH(text_row({5, id}), {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].where, "token 1");
  }
}

TEST(Qwen3VLForward, RefusesRowsOfAnotherPatchSize) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto refuse = [&](VisionInput images) {
    EXPECT_EQ(test::catch_user_error([&] { model->encode_images(images); }).kind(),
              ErrorKind::kData);
  };
  refuse({.pixel_values_NC = at::zeros({4, 1176}), .grid_thw = {{1, 2, 2}}});
  refuse({.pixel_values_NC = at::zeros({5, 1536}), .grid_thw = {{1, 2, 2}}});
  refuse({.pixel_values_NC = at::zeros({6, 1536}), .grid_thw = {{1, 2, 3}}});
  refuse({.pixel_values_NC = {}, .grid_thw = {{1, 2, 2}}});
  EXPECT_FALSE(model->encode_images({}).embeds_MH.defined());
}

TEST(Qwen3VLForward, AnInterruptEndsAPassUnlessItBelongsToAnUpdate) {
  const auto model = Model::load(test::tiny_tied(), {});
  const VisionInput images{.pixel_values_NC = at::zeros({4, 1536}), .grid_thw = {{1, 2, 2}}};
  set_interrupt_requested(true);
  EXPECT_NO_THROW(model->forward_TH(text_row({5, 6, 7}), {}));
  EXPECT_NO_THROW(model->encode_images(images));
  {
    const at::NoGradGuard no_grad;
    EXPECT_THROW(model->forward_TH(text_row({5, 6, 7}), {}), Interrupted);
    EXPECT_THROW(model->encode_images(images), Interrupted);
  }
  set_interrupt_requested(false);
}

TEST(Qwen3VLForward, TwoRunsGiveTheSameBits) {
  const test::OracleAnswers answers(test::tiny_untied());
  const auto model = Model::load(test::tiny_untied(), {});
  const RowInput row = answers.row("two_images");
  const VisionInput images = answers.images("two_images", model->description());
  EXPECT_TRUE(at::equal(model->forward_TH(row, model->encode_images(images)),
                        model->forward_TH(row, model->encode_images(images))));
}

}  // namespace
}  // namespace rematch
