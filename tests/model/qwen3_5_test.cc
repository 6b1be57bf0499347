// Qwen3.5: configuration, packed rows, saved checkpoints, targets of adapters.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/adapter_targets.h"
#include "model/families/family.h"
#include "model/packed_segments.h"
#include "model/row.h"
#include "model/save.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

using Axes = std::vector<int64_t>;
using Segments = std::vector<std::shared_ptr<const Segment>>;

ModelDescription described(const std::function<void(Json&)>& change) {
  return test::described_with(test::delta_tied(), change);
}
std::string refusal(const std::string& key, const Json& value) {
  return test::refusal_of(test::delta_tied(), [&](Json& root) { root["text_config"][key] = value; })
      .error;
}

std::vector<bool> attention_layers(const ModelDescription& model) {
  std::vector<bool> is_attention;
  for (const LayerDescription& layer : model.text.layers)
    is_attention.push_back(layer.attention() != nullptr);
  return is_attention;
}

// Segments of the lengths at which chunks begin and end, and two with images.
Segments mixed_segments() {
  Segments segments;
  for (const int64_t len : {1, 3, 4, 63, 64, 65, 200}) {
    auto segment = std::make_shared<Segment>();
    for (int64_t i = 0; i < len; ++i)
      segment->token_ids.push_back(static_cast<int>((len * 31 + i * i * 7 + i) % 350));
    segment->labels.assign(segment->token_ids.size(), kIgnoreLabel);
    segments.push_back(segment);
  }
  segments.insert(segments.begin() + 2, test::random_segment(7, 1, {.max_images = 2}));
  segments.push_back(test::random_segment(7, 2, {.max_images = 3}));
  return segments;
}

// A loss with a different gradient at every position.
at::Tensor loss_of(const Model& model, const Segments& segments, int64_t first_position) {
  const at::Tensor hidden =
      forward_row(model, make_row({.segments = segments}, test::noise_pixels));
  const at::Tensor position =
      at::arange(first_position, first_position + hidden.size(0), hidden.options()).unsqueeze(1);
  const at::Tensor channel = at::arange(hidden.size(1), hidden.options());
  return (hidden * at::sin(position * 0.7 + channel)).sum();
}

std::vector<at::Tensor> take_gradients(const Model& model) {
  std::vector<at::Tensor> gradients;
  for (const NamedParameter& parameter : model.parameters()) {
    gradients.push_back(parameter.tensor.grad().defined() ? parameter.tensor.grad().clone()
                                                          : at::zeros_like(parameter.tensor));
    at::Tensor(parameter.tensor).mutable_grad() = at::Tensor();
  }
  return gradients;
}

}  // namespace

TEST(Qwen35Family, ReadsPublishedConfigurations) {
  const ModelDescription model = described([](Json&) {});
  EXPECT_EQ(attention_layers(model), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(model.text.cache_indices(), (Axes{0, 1, 2, 0}));
  EXPECT_EQ(model.text.rope.axis_of_pair, (Axes{0, 1, 2, 0}));
  EXPECT_EQ(model.text.rope.width(), 8);
  EXPECT_TRUE(model.tie_word_embeddings);
  const AttentionDescription& attention = *model.text.layers[3].attention();
  EXPECT_TRUE(attention.has_output_gate);
  EXPECT_EQ(attention.q.num_outputs, 2 * 2 * 32);
  EXPECT_EQ(model.text.layers[0].delta()->num_channels(), 2 * 2 * 8 + 4 * 8);
  EXPECT_EQ(model.text.final_norm.kind, NormKind::kRmsOffset);
  EXPECT_TRUE(model.vision.deepstack_mergers.empty());
  EXPECT_TRUE(model.is_carried("mtp.fc.weight"));
}

TEST(Qwen35Family, ReadsOlderSpellings) {
  const ModelDescription model = described([](Json& root) {
    Json& text = root["text_config"];
    text.erase("layer_types");
    text["full_attention_interval"] = 2;
    text["rope_parameters"].erase("partial_rotary_factor");
    root["vision_config"]["model_type"] = "qwen3_5";
    root["vision_config"]["deepstack_visual_indexes"] = Json::array();
  });
  EXPECT_EQ(attention_layers(model), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(model.text.rope.width(), 8);
}

TEST(Qwen35Family, RefusesOtherLayersByName) {
  EXPECT_NE(refusal("attn_output_gate", false).find("attn_output_gate"), std::string::npos);
  EXPECT_NE(refusal("attention_bias", true).find("attention_bias"), std::string::npos);
  EXPECT_NE(refusal("mamba_ssm_dtype", "bfloat16").find("mamba_ssm_dtype"), std::string::npos);
  EXPECT_NE(refusal("linear_num_value_heads", 3).find("linear_num_value_heads"), std::string::npos);
  EXPECT_NE(refusal("layer_types", Json{"full_attention"}).find("layer_types"), std::string::npos);
  EXPECT_NE(refusal("layer_types",
                    Json{"sliding_attention", "full_attention", "full_attention", "full_attention"})
                .find("layer_types"),
            std::string::npos);
  const Problem deepstack = test::refusal_of(test::delta_tied(), [](Json& root) {
    root["vision_config"]["deepstack_visual_indexes"] = {0};
  });
  EXPECT_NE(deepstack.error.find("deepstack_visual_indexes"), std::string::npos);
}

// Acceptance (b): a packed row resets the window of the convolution and the state at every segment.
TEST(Qwen35Packing, PackedEqualsAloneInOutputsAndGradients) {
  const auto model = Model::load(test::delta_tied(), {});
  for (const NamedParameter& parameter : model->parameters()) parameter.tensor.requires_grad_(true);
  const Segments segments = mixed_segments();
  const at::Tensor packed_loss = loss_of(*model, segments, 0);
  packed_loss.backward();
  const std::vector<at::Tensor> packed = take_gradients(*model);
  double alone_loss = 0;
  int64_t begin = 0;
  for (const auto& segment : segments) {
    const at::Tensor loss = loss_of(*model, {segment}, begin);
    loss.backward();
    alone_loss += loss.item<double>();
    begin += segment->encoded_len();
  }
  std::vector<at::Tensor> alone;
  for (const NamedParameter& parameter : model->parameters())
    alone.push_back(parameter.tensor.grad().defined() ? parameter.tensor.grad()
                                                      : at::zeros_like(parameter.tensor));
  EXPECT_NEAR(packed_loss.item<double>(), alone_loss, 1e-5 * static_cast<double>(begin));
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_LE((packed[i] - alone[i]).norm().item<double>(),
              1e-5 * std::max(1.0, alone[i].norm().item<double>()))
        << model->parameters()[i].name;
  }
}

TEST(Qwen35Packing, HiddenStatesOfAPackedRowAreThoseOfTheSegmentsAlone) {
  const auto model = Model::load(test::delta_tied(), {});
  const at::NoGradGuard no_grad;
  const Segments segments = mixed_segments();
  const at::Tensor packed =
      forward_row(*model, make_row({.segments = segments}, test::noise_pixels));
  int64_t begin = 0;
  for (const auto& segment : segments) {
    const int64_t len = segment->encoded_len();
    const at::Tensor alone =
        forward_row(*model, make_row({.segments = {segment}}, test::noise_pixels));
    EXPECT_LE((packed.narrow(0, begin, len) - alone).abs().max().item<double>(),
              1e-5 * alone.abs().max().item<double>())
        << "segment of " << len << " tokens at " << begin;
    begin += len;
  }
}

// Acceptance (g).
TEST(Qwen35Files, TensorsOfMultiTokenPredictionAndDtypesSurviveASave) {
  const auto model = Model::load(test::delta_tied(), {.dtype = at::kBFloat16});
  EXPECT_TRUE(model->unused_tensors().empty());
  EXPECT_EQ(model->parameter("model.language_model.layers.0.linear_attn.A_log").scalar_type(),
            at::kFloat);
  test::TempDir dir;
  save_hf_model(test::delta_tied(), *model, dir.path());
  const auto source = HfDir::open(test::delta_tied()), saved = HfDir::open(dir.path());
  ASSERT_EQ(saved->names(), source->names());
  EXPECT_EQ(std::count_if(saved->names().begin(), saved->names().end(),
                          [](const std::string& name) { return name.starts_with("mtp."); }),
            15);
  std::set<at::ScalarType> dtypes;
  for (const std::string& name : source->names()) {
    EXPECT_EQ(saved->dtype(name), source->dtype(name)) << name;
    EXPECT_TRUE(at::equal(saved->tensor(name), source->tensor(name))) << name;
    dtypes.insert(saved->dtype(name));
  }
  EXPECT_EQ(dtypes.size(), 2u);
}

TEST(Qwen35Adapters, AllLinearLeavesOutWhatOtherServersIgnore) {
  const ModelDescription model = describe_model(test::delta_tied());
  const std::shared_ptr<Model> loaded = Model::load(test::delta_tied(), {});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : loaded->parameters()) names.push_back(parameter.name);
  AdapterTargets options;
  options.is_frozen = [](const std::string& name) { return name.starts_with("model.visual."); };
  const std::vector<std::string> modules = select_targets(model, names, options).modules;
  std::set<std::string> kinds;
  for (const std::string& module : modules) kinds.insert(module.substr(module.rfind('.') + 1));
  EXPECT_EQ(kinds,
            (std::set<std::string>{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                   "down_proj", "in_proj_qkv", "in_proj_z", "out_proj"}));
  options.target_modules = {"in_proj_a", "in_proj_b"};
  EXPECT_EQ(select_targets(model, names, options).modules.size(), 6u);
}

}  // namespace rematch
