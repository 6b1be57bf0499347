#include "model/lora.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "model/checkpoint/safetensors.h"
#include "model/lora_oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

std::string golden(const std::string& name) {
  return test::source_path("tests/golden/lora/" + name);
}

AdapterSelection all_linear(const Model& model) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  return select_targets(model.description(), names, {});
}

// B away from zero, or the adapter would do nothing.
void stir(const Adapter& adapter) {
  const at::NoGradGuard no_grad;
  at::manual_seed(7);
  for (const NamedParameter& parameter : adapter.parameters()) {
    if (parameter.name.find("lora_B") != std::string::npos)
      at::Tensor(parameter.tensor).normal_(0, 0.1);
    if (parameter.name.find("magnitude") != std::string::npos)
      at::Tensor(parameter.tensor).mul_(1.3);
  }
}

}  // namespace

// One Linear of each kind against PEFT, also under torch.autocast("cpu", bfloat16): dtype, bias,
// DoRA, dropout with the same mask.
class LoraLayer : public testing::TestWithParam<std::string> {};

TEST_P(LoraLayer, EqualsPeftInOutputGradientsAndMergedWeight) {
  const std::string key = GetParam() + ".";
  const bool is_autocast = key.find("autocast") == 0,
             is_half = is_autocast || key.find("bfloat16") == 0;
  const auto file =
      SafetensorsFile::open(golden(is_autocast ? "autocast.safetensors" : "layers.safetensors"));
  const auto take = [&](const char* name) { return file->tensor(key + name); };
  const bool use_dora = key.find("dora") != std::string::npos,
             drops = key.find("dropout") != std::string::npos;
  const auto leaf = [&](const char* name) { return take(name).set_requires_grad(true); };
  auto dropout = std::make_shared<LoraDropout>();
  dropout->active = drops;
  dropout->mask = [](const std::string& module, at::IntArrayRef sizes) {
    return test::recipe_mask(module, sizes);
  };
  const LoraSettings options{
      .rank = 2, .alpha = 3, .dropout = drops ? 0.1 : 0.0, .use_dora = use_dora};
  const LoraTensors tensors{leaf("a"), leaf("b"), use_dora ? leaf("m") : at::Tensor()};
  LinearWeights layer{take("weight"), file->has(key + "bias") ? take("bias") : at::Tensor()};
  layer.adapter = std::make_shared<LoraLinear>("0", options, tensors, dropout);

  const at::Tensor x = leaf("x");
  const at::Tensor y = linear(x, layer);
  EXPECT_EQ(y.scalar_type(), is_half ? at::kBFloat16 : at::kFloat);
  torch::autograd::backward({y}, {take("g").to(y.scalar_type())});
  // Two steps of bfloat16 where the base works in it.
  const double tolerance = is_half ? 1.6e-2 : 1e-5;
  const auto expect_near = [&](const at::Tensor& found, const char* name) {
    const at::Tensor expected = take(name).to(at::kFloat);
    const double error = (found.detach().to(at::kFloat) - expected).abs().max().item<double>();
    EXPECT_LE(error, tolerance * std::max(1.0, expected.abs().max().item<double>())) << name;
  };
  expect_near(y, "y");
  expect_near(x.grad(), "grad_x");
  expect_near(tensors.a_rI.grad(), "grad_a");
  expect_near(tensors.b_Or.grad(), "grad_b");
  if (use_dora) {
    expect_near(tensors.magnitude_O.grad(), "grad_m");
  }
  if (is_autocast) return;
  if (use_dora) {
    const LoraTensors fresh = initial_lora(layer.weight, options, "0", 1);
    EXPECT_LE((fresh.magnitude_O - take("initial_magnitude")).abs().max().item<double>(),
              is_half ? 0.0 : 1e-6);
  }
  expect_near(merge_lora(layer.weight, tensors, options.scaling()), "merged");
  EXPECT_EQ(merge_lora(layer.weight, tensors, options.scaling()).scalar_type(),
            layer.weight.scalar_type());
}

INSTANTIATE_TEST_SUITE_P(
    AllKinds, LoraLayer,
    testing::Values("float32.plain.lora", "float32.plain.dora", "float32.plain.lora_dropout",
                    "float32.plain.dora_dropout", "float32.bias.lora", "float32.bias.dora",
                    "float32.bias.lora_dropout", "float32.bias.dora_dropout", "bfloat16.plain.lora",
                    "bfloat16.plain.dora", "bfloat16.plain.lora_dropout",
                    "bfloat16.plain.dora_dropout", "bfloat16.bias.lora", "bfloat16.bias.dora",
                    "bfloat16.bias.lora_dropout", "bfloat16.bias.dora_dropout",
                    "autocast.plain.lora", "autocast.plain.dora", "autocast.plain.lora_dropout",
                    "autocast.plain.dora_dropout", "autocast.bias.lora", "autocast.bias.dora",
                    "autocast.bias.lora_dropout", "autocast.bias.dora_dropout"),
    [](const auto& info) {
      std::string name = info.param;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(Lora, PeftAdaptersOnTextVisionAndAlignerGivePeftsNumbers) {
  for (const char* name : {"lora", "dora", "lora_dropout", "dora_dropout"}) {
    SCOPED_TRACE(name);
    test::expect_equals_peft(test::tiny_tied(), golden(name),
                             std::string(name).find("dropout") != std::string::npos);
  }
}

TEST(Lora, ANewAdapterDoesNotChangeTheModel) {
  for (const bool use_dora : {false, true}) {
    const auto model = Model::load(test::tiny_tied(), {});
    const at::Tensor before = test::recipe_logits(*model);
    const auto adapter =
        Adapter::create(*model, all_linear(*model), {.lora = {.rank = 3, .use_dora = use_dora}});
    EXPECT_LT((test::recipe_logits(*model) - before).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(adapter->parameters().size(), (use_dora ? 3u : 2u) * (model->linears().size()));
  }
}

TEST(Lora, InitialAIsUniformWithinOneOverTheRootOfTheWidthAndRepeats) {
  const at::Tensor weight = at::ones({8, 400});
  const LoraTensors tensors = initial_lora(weight, {.rank = 16}, "some.module", 3);
  const double bound = 1.0 / 20.0;
  EXPECT_LE(tensors.a_rI.abs().max().item<double>(), bound);
  EXPECT_GT(tensors.a_rI.abs().max().item<double>(), 0.99 * bound);
  EXPECT_NEAR(tensors.a_rI.mean().item<double>(), 0.0, 4 * bound / std::sqrt(3.0 * 6400));
  EXPECT_NEAR(tensors.a_rI.std().item<double>(), bound / std::sqrt(3.0), 0.03 * bound);
  EXPECT_EQ(tensors.b_Or.count_nonzero().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(tensors.a_rI, initial_lora(weight, {.rank = 16}, "some.module", 3).a_rI));
  EXPECT_FALSE(at::equal(tensors.a_rI, initial_lora(weight, {.rank = 16}, "other.module", 3).a_rI));
  EXPECT_FALSE(at::equal(tensors.a_rI, initial_lora(weight, {.rank = 16}, "some.module", 4).a_rI));
}

TEST(Lora, TheBaseModelTakesNoGradientAndKeepsItsBits) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto plain = Model::load(test::tiny_tied(), {});
  const auto adapter =
      Adapter::create(*model, all_linear(*model), {.lora = {.rank = 2, .use_dora = true}});
  stir(*adapter);
  torch::autograd::backward({test::recipe_logits(*model).sum()}, {});
  for (const NamedParameter& parameter : model->parameters()) {
    EXPECT_FALSE(parameter.tensor.requires_grad()) << parameter.name;
    EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_TRUE(at::equal(parameter.tensor, plain->parameter(parameter.name))) << parameter.name;
  }
}

TEST(Lora, MergedWeightsGiveTheAdaptersLogits) {
  for (const bool use_dora : {false, true}) {
    const auto model = Model::load(test::tiny_tied(), {});
    const auto adapter =
        Adapter::create(*model, all_linear(*model), {.lora = {.rank = 3, .use_dora = use_dora}});
    stir(*adapter);
    const at::Tensor expected = test::recipe_logits(*model);
    const auto plain = Model::load(test::tiny_tied(), {});
    EXPECT_GT((test::recipe_logits(*plain) - expected).abs().max().item<double>(), 0.1);
    for (const NamedParameter& parameter : model->parameters())
      plain->parameter(parameter.name).copy_(adapter->merge(parameter));
    EXPECT_LT((test::recipe_logits(*plain) - expected).abs().max().item<double>(),
              1e-5 * expected.abs().max().item<double>());
  }
}

TEST(Lora, TheNormFollowsTheAdapter) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto adapter =
      Adapter::create(*model, all_linear(*model), {.lora = {.rank = 3, .use_dora = true}});
  test::recipe_logits(*model);  // norms are known now
  stir(*adapter);
  const at::Tensor expected = test::recipe_logits(*model);
  const auto fresh = Model::load(test::tiny_tied(), {});
  Adapter::load(*fresh, adapter->files(), "memory");
  EXPECT_TRUE(at::equal(test::recipe_logits(*fresh), expected));
}

TEST(Lora, WithoutGradientsTheMergedEffectIsUsedAndFollowsTheAdapter) {
  for (const bool use_dora : {false, true}) {
    const auto model = Model::load(test::tiny_tied(), {});
    const auto adapter = Adapter::create(
        *model, all_linear(*model), {.lora = {.rank = 3, .dropout = 0.5, .use_dora = use_dora}});
    const auto merged_logits = [&] {
      const at::NoGradGuard no_grad;
      return test::recipe_logits(*model);
    };
    const at::Tensor fresh = merged_logits();
    stir(*adapter);
    const at::Tensor stirred = merged_logits();
    EXPECT_GT((stirred - fresh).abs().max().item<double>(), 0.1);
    const at::Tensor expected = test::recipe_logits(*model).detach();
    EXPECT_LT((stirred - expected).abs().max().item<double>(),
              1e-5 * expected.abs().max().item<double>());
    EXPECT_TRUE(at::equal(merged_logits(), stirred));
  }
}

TEST(Lora, DropoutRepeatsForARowAndDiffersBetweenRowsStepsAndSeeds) {
  const auto logits = [](uint64_t seed, int64_t step, int64_t row) {
    const auto model = Model::load(test::tiny_tied(), {});
    const auto adapter =
        Adapter::create(*model, all_linear(*model),
                        {.lora = {.rank = 3, .dropout = 0.3, .use_dora = true}, .seed = 5});
    stir(*adapter);
    // Another seed for the masks alone: the adapter itself stays.
    const auto twin = Adapter::load(*model, adapter->files(), "memory", seed);
    const RowScope training = twin->training_row(step, row);
    return test::recipe_logits(*model).detach();
  };
  const at::Tensor first = logits(1, 4, 2);
  EXPECT_TRUE(at::equal(logits(1, 4, 2), first));
  EXPECT_FALSE(at::equal(logits(1, 4, 3), first));
  EXPECT_FALSE(at::equal(logits(1, 5, 2), first));
  EXPECT_FALSE(at::equal(logits(2, 4, 2), first));
}

TEST(Lora, DropoutEndsWithTheTrainingRow) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto adapter =
      Adapter::create(*model, all_linear(*model), {.lora = {.rank = 3, .dropout = 0.5}});
  stir(*adapter);
  const at::Tensor expected = test::recipe_logits(*model);
  {
    const RowScope training = adapter->training_row(0, 0);
    EXPECT_FALSE(at::equal(test::recipe_logits(*model), expected));
  }
  EXPECT_TRUE(at::equal(test::recipe_logits(*model), expected));
}

TEST(Lora, GradientCheckpointingDropsTheSameAndChangesNoBit) {
  const auto gradients = [](Checkpointing checkpointing) {
    const auto model = Model::load(test::tiny_tied(), {.gradient_checkpointing = checkpointing});
    const auto adapter = Adapter::create(*model, all_linear(*model),
                                         {.lora = {.rank = 3, .dropout = 0.3, .use_dora = true}});
    stir(*adapter);
    const RowScope training = adapter->training_row(4, 2);
    torch::autograd::backward({test::recipe_logits(*model).square().sum()}, {});
    std::vector<at::Tensor> found;
    for (const NamedParameter& parameter : adapter->parameters())
      found.push_back(parameter.tensor.grad());
    return found;
  };
  const std::vector<at::Tensor> plain = gradients(Checkpointing::kOff);
  for (const Checkpointing kind : {Checkpointing::kOn, Checkpointing::kSelective}) {
    const std::vector<at::Tensor> recomputed = gradients(kind);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], recomputed[i])) << i;
  }
}

TEST(Lora, RefusesDropoutInFrontOfTheHead) {
  const auto model = Model::load(test::tiny_untied(), {});
  AdapterSelection selection;
  selection.modules = {"lm_head"};
  const UserError error = test::catch_user_error(
      [&] { Adapter::create(*model, selection, {.lora = {.dropout = 0.1}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(error.problems()[0].where, "tuner.lora_dropout");
  EXPECT_NO_THROW(Adapter::create(*model, selection, {.lora = {.dropout = 0}}));
}

TEST(Lora, ResumingTakesOverValuesAndRefusesAnotherAdapter) {
  const auto model = Model::load(test::tiny_tied(), {});
  const auto adapter = Adapter::create(*model, all_linear(*model), {.lora = {.rank = 3}});
  stir(*adapter);
  const PeftAdapter saved = adapter->files();
  const auto other_model = Model::load(test::tiny_tied(), {});
  const auto other =
      Adapter::create(*other_model, all_linear(*other_model), {.lora = {.rank = 3}, .seed = 9});
  other->set_values(saved, "checkpoint-2");
  EXPECT_TRUE(at::equal(test::recipe_logits(*other_model), test::recipe_logits(*model)));
  const auto wrong = Adapter::create(*other_model, all_linear(*other_model), {.lora = {.rank = 4}});
  const UserError error = test::catch_user_error([&] { wrong->set_values(saved, "checkpoint-2"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "checkpoint-2");
  EXPECT_NE(error.problems()[0].what.find("lora_A"), std::string::npos);
}

}  // namespace rematch
