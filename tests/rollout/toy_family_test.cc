// A family of two layers that is registered here and nowhere else: what a new family has to write,
// and that every engine reads it.
#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/rollout/hf_engine.h"
#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/cpu/runner.h"
#include "engine/rollout/native/native_engine.h"
#include "model/adapter.h"
#include "model/checkpoint/hf_dir.h"
#include "model/decoder.h"
#include "model/families/family.h"
#include "model/vision_tower.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr int kPad = 7, kVocab = 80;

NormDescription layer_norm_of(const std::string& module, int64_t width) {
  return {module, width, NormKind::kLayer, 1e-5};
}

// Biases on q, k and v, no norms of heads, positions in sections one after the other, no DeepStack:
// all that Qwen3-VL is not.
ModelDescription describe_toy(const Json& config, const JsonOrigin& origin) {
  JsonFields root(config, origin);
  const int64_t hidden = 48, inner = 96, heads = 4, kv_heads = 2, head_dim = 16;
  ModelDescription model;
  model.image_token_id = root.integer_or("pad", kPad);
  model.part_of.modules = {{"eye.merge", ParameterPart::kAligner}, {"eye", ParameterPart::kVit}};
  TextDescription& text = model.text;
  text = {.vocab_size = kVocab,
          .hidden_size = hidden,
          .intermediate_size = inner,
          .num_attention_heads = heads,
          .num_key_value_heads = kv_heads,
          .head_dim = head_dim,
          .rope = {.theta = 1000, .axis_of_pair = {0, 0, 1, 1, 1, 2, 2, 2}},
          .embedding = "words",
          .final_norm = {"last_norm", hidden, NormKind::kRms, 1e-5},
          .head = {"answers", kVocab, hidden}};
  for (int64_t i = 0; i < root.integer_or("layers", 2); ++i) {
    const std::string layer = fmt::format("mind.{}.", i);
    text.layers.push_back(
        {.mixer_norm = {layer + "norm_a", hidden, NormKind::kRms, 1e-5},
         .mixer = AttentionDescription{.q = {layer + "query", heads * head_dim, hidden, true},
                                       .k = {layer + "key", kv_heads * head_dim, hidden, true},
                                       .v = {layer + "value", kv_heads * head_dim, hidden, true},
                                       .o = {layer + "out", hidden, heads * head_dim},
                                       .q_norm = std::nullopt,
                                       .k_norm = std::nullopt,
                                       .window = root.integer_or("window", 0)},
         .mlp_norm = {layer + "norm_b", hidden, NormKind::kRms, 1e-5},
         .mlp = {.gate = LinearDescription{layer + "gate", inner, hidden},
                 .up = {layer + "up", inner, hidden},
                 .down = {layer + "down", hidden, inner}}});
  }
  VisionDescription& vision = model.vision;
  vision.hidden_size = 32;
  vision.intermediate_size = 64;
  vision.num_heads = 2;
  vision.patch_size = 4;
  vision.temporal_patch_size = 1;
  vision.patch_embed = {"eye.patches", 32, vision.patch_width(), true};
  vision.position_table = "eye.places";
  vision.num_position_embeddings = 16;
  vision.blocks.push_back({.norm1 = layer_norm_of("eye.0.norm_a", 32),
                           .qkv = {"eye.0.qkv", 96, 32, true},
                           .proj = {"eye.0.out", 32, 32, true},
                           .norm2 = layer_norm_of("eye.0.norm_b", 32),
                           .mlp = {.activation = Activation::kGeluTanh,
                                   .gate = std::nullopt,
                                   .up = {"eye.0.up", 64, 32, true},
                                   .down = {"eye.0.down", 32, 64, true}}});
  vision.merger = {.norm = layer_norm_of("eye.merge.norm", 32),
                   .fc1 = {"eye.merge.a", 128, 128, true},
                   .fc2 = {"eye.merge.b", hidden, 128, true}};
  return model;
}

const bool kRegistered = [] {
  register_family({.title = "toy",
                   .model_type = "toy_vl",
                   .architectures = {},
                   .describe = describe_toy,
                   .tokenizer_classes = {},
                   .split_pattern = {}});
  return true;
}();

// A checkpoint directory: config.json and random weights of every tensor that the towers ask for.
class ToyCheckpoint {
 public:
  explicit ToyCheckpoint(const std::string& config = R"({"model_type":"toy_vl"})") {
    dir_.write("config.json", config);
    at::manual_seed(11);
    const ModelDescription model = describe_model(path());
    std::vector<TensorEntry> tensors;
    LayerSource source([&](const std::string& name, const std::vector<int64_t>& shape) {
      const at::Tensor values = at::randn(shape);
      const bool is_weight = shape.size() > 1;
      tensors.push_back({name, is_weight
                                   ? values / std::sqrt(static_cast<double>(values[0].numel()))
                                   : 1 + 0.1 * values});
      return tensors.back().tensor;
    });
    const VisionTower tower(model.vision, source);
    source.take(model.text.embedding + ".weight", {kVocab, model.text.hidden_size}).mul_(4);
    const Decoder decoder(model.text, source);
    source.take(model.text.head.module + ".weight", {kVocab, model.text.hidden_size}).mul_(4);
    write_hf_weights(path(), tensors);
  }
  const std::string& path() const { return dir_.path(); }

 private:
  test::TempDir dir_;
};

std::shared_ptr<const Patches> pixels_of(const ImageRef& image) {
  auto patches = std::make_shared<Patches>();
  patches->grid_thw = image.grid_thw;
  patches->row_width = 3 * 4 * 4;
  for (int64_t i = 0; i < patches->num_rows() * patches->row_width; ++i) {
    patches->pixel_values.push_back(std::sin(static_cast<float>(i) * 0.37f));
  }
  return patches;
}

// One about an image of 2 x 3 visual tokens, one of text alone.
std::vector<Prompt> prompts() {
  return {{.sample_id = 0,
           .token_ids = {1, 20, kPad, kPad, kPad, kPad, kPad, kPad, 33, 4},
           .images = {{.path = "picture", .grid_thw = {1, 4, 6}}},
           .where = "toy:1"},
          {.sample_id = 1, .token_ids = {9, 8, 50, 60, 61}, .images = {}, .where = "toy:2"}};
}

std::vector<std::vector<int>> answers(RolloutEngine& engine) {
  std::vector<std::vector<int>> ids;
  for (const Rollout& rollout : engine.generate(prompts(), {}))
    ids.push_back(rollout.response_token_ids);
  return ids;
}

}  // namespace

TEST(ToyFamily, AnswersAlikeOnEveryEngine) {
  ASSERT_TRUE(kRegistered);
  at::set_num_threads(1);
  const ToyCheckpoint checkpoint;
  const std::shared_ptr<const Model> model = Model::load(checkpoint.path(), {});
  const GenerateOptions options{{.max_new_tokens = 24}};
  HfEngine hf(model, nullptr, pixels_of, options);
  const std::vector<std::vector<int>> wanted = answers(hf);
  EXPECT_EQ(hf.num_near_ties(), 0);
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_EQ(wanted[0].size(), 24u);
  EXPECT_NE(wanted[0], wanted[1]);
  NativeEngine aten({.model = model,
                     .tokenizer = nullptr,
                     .pixels = pixels_of,
                     .runner = make_aten_runner(model),
                     .encoder = make_aten_encoder(model)},
                    options);
  EXPECT_EQ(answers(aten), wanted);
  NativeEngine cpu({.model = model,
                    .tokenizer = nullptr,
                    .pixels = pixels_of,
                    .runner = make_cpu_runner(model),
                    .encoder = make_cpu_encoder(model)},
                   options);
  EXPECT_EQ(answers(cpu), wanted);
}

TEST(ToyFamily, SaysWhereAnAdapterGoes) {
  const ToyCheckpoint checkpoint;
  const auto model = Model::load(checkpoint.path(), {});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  AdapterTargets targets;
  targets.is_frozen = [&](const std::string& parameter) {
    return model->description().part_of(parameter) != ParameterPart::kLlm;
  };
  const AdapterSelection selection = select_targets(model->description(), names, targets);
  EXPECT_EQ(selection.modules.size(), 2u * 7);
  EXPECT_EQ(selection.modules.front(), "mind.0.query");
  EXPECT_EQ(selection.num_frozen, 4 + 2);
  Adapter::create(*model, selection, {.lora = {.rank = 2}});
  EXPECT_EQ(model->head().weight.sizes(), (std::vector<int64_t>{kVocab, 48}));
  EXPECT_EQ(model->head().adapter, nullptr);
}

TEST(ToyFamily, IsRefusedWhereItAsksForWhatNoEngineComputes) {
  test::TempDir dir;
  dir.write("config.json", R"({"model_type":"toy_vl","window":8})");
  const UserError error = test::catch_user_error([&] { Model::load(dir.path(), {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].what.find("mind.0.query"), std::string::npos);
}

TEST(ToyFamily, IsNamedAmongTheKnownOnesWhenAnotherIsRefused) {
  test::TempDir dir;
  dir.write("config.json", R"({"model_type":"toy_vl_moe"})");
  const UserError error = test::catch_user_error([&] { describe_model(dir.path()); });
  EXPECT_NE(error.problems()[0].what.find("toy_vl_moe"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("\"toy_vl\""), std::string::npos);
}

}  // namespace rematch
