// Gradient checkpointing of the towers: the bits of plain training, in less memory.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <numeric>

#include "model/adapter.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "nn/memory_meter.h"

namespace rematch {
namespace {

using Gradients = std::map<std::string, at::Tensor>;

constexpr Checkpointing kLeanKinds[] = {Checkpointing::kOn, Checkpointing::kSelective};

std::shared_ptr<Model> tiny(Checkpointing checkpointing, at::ScalarType dtype = at::kFloat) {
  const auto model =
      Model::load(test::tiny_tied(), {.dtype = dtype, .gradient_checkpointing = checkpointing});
  for (const NamedParameter& parameter : model->parameters())
    parameter.tensor.set_requires_grad(true);
  return model;
}

// The answers' last case: several images, DeepStack features after the first layers.
at::Tensor forward(const Model& model) {
  const test::OracleAnswers answers(test::tiny_tied());
  const std::string name = test::OracleAnswers::cases().back();
  return model.forward_TH(answers.row(name),
                          model.encode_images(answers.images(name, model.description())));
}

void take(const std::vector<NamedParameter>& parameters, Gradients& found) {
  for (const NamedParameter& parameter : parameters) {
    if (parameter.tensor.grad().defined())
      found[parameter.name] = std::exchange(parameter.tensor.mutable_grad(), {});
  }
}

Gradients gradients_of(const Model& model) {
  const at::Tensor hidden_TH = forward(model);
  torch::autograd::backward(
      {(hidden_TH.flatten() * at::sin(at::arange(hidden_TH.numel(), at::kFloat) * 0.37f)).sum()},
      {});
  Gradients found;
  take(model.parameters(), found);
  if (model.adapter()) take(model.adapter()->parameters(), found);
  return found;
}

void expect_same_bits(const Gradients& found, const Gradients& wanted) {
  ASSERT_FALSE(wanted.empty());
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, gradient] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(at::equal(found.at(name), gradient)) << name;
  }
}

}  // namespace

class GradientCheckpointingOf : public testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, GradientCheckpointingOf,
                         testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

TEST_P(GradientCheckpointingOf, GivesTheBitsOfPlainTrainingThroughImagesAndDeepstack) {
  const auto plain = tiny(Checkpointing::kOff, GetParam());
  const Gradients wanted = gradients_of(*plain);
  EXPECT_TRUE(wanted.contains("model.visual.patch_embed.proj.weight") &&
              wanted.contains("model.visual.deepstack_merger_list.0.linear_fc1.weight"));
  for (const Checkpointing kind : kLeanKinds) {
    const auto lean = tiny(kind, GetParam());
    {
      const at::NoGradGuard no_grad;
      EXPECT_TRUE(at::equal(forward(*lean), forward(*plain)));
    }
    expect_same_bits(gradients_of(*lean), wanted);
  }
}

TEST_P(GradientCheckpointingOf, GivesTheBitsOfPlainTrainingWithFrozenParts) {
  for (const std::string frozen :
       {"model.visual.", "model.language_model.embed_tokens", "model.language_model.layers.0.",
        "model.language_model.layers.0.mlp.gate_proj"}) {
    const auto freeze = [&](const std::shared_ptr<Model>& model) {
      for (const NamedParameter& parameter : model->parameters())
        parameter.tensor.set_requires_grad(!parameter.name.starts_with(frozen));
      return model;
    };
    const Gradients wanted = gradients_of(*freeze(tiny(Checkpointing::kOff, GetParam())));
    for (const Checkpointing kind : kLeanKinds)
      expect_same_bits(gradients_of(*freeze(tiny(kind, GetParam()))), wanted);
  }
}

// The first layer's gate has no gradient then, but its up has one.
TEST(GradientCheckpointing, GivesTheBitsOfPlainTrainingWhereOneOfTwoProductsIsTrained) {
  const auto train_up = [](Checkpointing kind) {
    const auto model = tiny(kind);
    for (const NamedParameter& parameter : model->parameters())
      parameter.tensor.set_requires_grad(parameter.name.find("up_proj") != std::string::npos);
    return gradients_of(*model);
  };
  const Gradients wanted = train_up(Checkpointing::kOff);
  for (const Checkpointing kind : kLeanKinds) expect_same_bits(train_up(kind), wanted);
}

namespace {

struct AdapterCase {
  std::string base;
  bool use_dora = false, in_4bit = false;
  double dropout = 0.3;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> segment_lens = {60, 40};
};

Gradients adapter_gradients(const AdapterCase& of, Checkpointing kind) {
  const auto model = Model::load(
      of.base, {.dtype = of.dtype,
                .gradient_checkpointing = kind,
                .four_bit = of.in_4bit ? std::optional(FourBitSettings{}) : std::nullopt});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter =
      Adapter::create(*model, select_targets(model->description(), names, {}),
                      {.lora = {.rank = 4, .dropout = of.dropout, .use_dora = of.use_dora},
                       .seed = 7,
                       .base_model = "x"});
  for (const NamedParameter& parameter : adapter->parameters()) {
    if (parameter.name.find("lora_B") == std::string::npos) continue;
    const at::NoGradGuard no_grad;
    const int64_t size = parameter.tensor.numel();
    parameter.tensor.copy_(
        at::sin(at::arange(size, at::kFloat)).mul_(0.05).view(parameter.tensor.sizes()));
  }
  const auto training = adapter->training_row(3, 1);
  RowInput row{.token_ids = {}, .segment_lens = of.segment_lens};
  const int64_t num_tokens = std::reduce(row.segment_lens.begin(), row.segment_lens.end());
  for (int64_t i = 0; i < num_tokens; ++i) row.token_ids.push_back(2 + i * 7 % 19);
  const at::Tensor hidden_TH = model->forward_TH(row, {});
  torch::autograd::backward(
      {(hidden_TH.flatten() * at::sin(at::arange(hidden_TH.numel(), at::kFloat) * 0.37f)).sum()},
      {});
  Gradients found;
  take(adapter->parameters(), found);
  return found;
}

void expect_same_bits_of_adapters(const AdapterCase& of) {
  SCOPED_TRACE(of.base);
  const Gradients wanted = adapter_gradients(of, Checkpointing::kOff);
  for (const Checkpointing kind : kLeanKinds) expect_same_bits(adapter_gradients(of, kind), wanted);
}

}  // namespace

// Every family, in 4 bits too.
TEST(GradientCheckpointing, DropsTheSameAdapterInputsWhenRecomputing) {
  for (const std::string& base : {test::tiny_tied(), test::windows_tied(), test::delta_tied()}) {
    for (const bool use_dora : {false, true}) {
      for (const bool in_4bit : {false, true})
        expect_same_bits_of_adapters({.base = base, .use_dora = use_dora, .in_4bit = in_4bit});
    }
  }
}

TEST(GradientCheckpointing, ReadsTheResultsOfDoraWithoutDropout) {
  expect_same_bits_of_adapters({.base = test::tiny_tied(), .use_dora = true, .dropout = 0});
}

// Short rows have other products (model/nn/affine.cc).
TEST(GradientCheckpointing, GivesTheBitsOfAdaptersInBfloat16) {
  for (const std::string& base : {test::tiny_tied(), test::delta_tied()}) {
    for (const bool use_dora : {false, true}) {
      AdapterCase of{.base = base, .use_dora = use_dora, .dtype = at::kBFloat16};
      expect_same_bits_of_adapters(of);
      of.segment_lens = {40};
      expect_same_bits_of_adapters(of);
    }
  }
}

TEST(GradientCheckpointing, KeepsNoGraphWithoutGradients) {
  for (const Checkpointing kind : kLeanKinds) {
    const auto model = tiny(kind);
    for (const NamedParameter& parameter : model->parameters())
      parameter.tensor.set_requires_grad(false);
    EXPECT_FALSE(forward(*model).requires_grad());
  }
}

TEST(GradientCheckpointing, HalvesTheActivationsOfSixteenDecoderLayersAtLeast) {
  const test::CheckpointCopy copy = [] {
    test::CheckpointCopy made(test::tiny_tied());
    made.edit_config([](Json& config) { config["text_config"]["num_hidden_layers"] = 16; });
    const std::vector<TensorEntry> stored = made.tensors;
    for (int layer = 0; layer < 16; ++layer) {
      for (const TensorEntry& entry : stored) {
        const std::string first = "model.language_model.layers.0.",
                          own = "model.language_model.layers." + std::to_string(layer) + ".";
        const bool is_there =
            std::any_of(stored.begin(), stored.end(),
                        [&](const TensorEntry& other) { return other.name.starts_with(own); });
        if (entry.name.starts_with(first) && !is_there)
          made.tensors.push_back({own + entry.name.substr(first.size()), entry.tensor});
      }
    }
    made.write_weights();
    return made;
  }();
  RowInput row{.token_ids = std::vector<int64_t>(2000, 5), .segment_lens = {900, 1100}};
  const auto peak_of = [&](Checkpointing checkpointing) {
    const auto model = Model::load(copy.path(), {.gradient_checkpointing = checkpointing});
    for (const NamedParameter& parameter : model->parameters()) {
      parameter.tensor.set_requires_grad(parameter.name.starts_with("model.language_model.layers"));
      // gradients are not activations
      parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
    }
    const test::MemoryMeter meter;
    torch::autograd::backward({model->forward_TH(row, {}).sum()}, {});
    return meter.peak_bytes();
  };
  const int64_t plain = peak_of(Checkpointing::kOff), lean = peak_of(Checkpointing::kOn),
                selective = peak_of(Checkpointing::kSelective);
  EXPECT_LE(2 * lean, plain) << lean << " " << plain;
  EXPECT_LT(lean, selective);
  EXPECT_LT(selective, plain);
  RecordProperty("ratio", std::to_string(static_cast<double>(plain) / static_cast<double>(lean)));
}

}  // namespace rematch
