#include "model/families/qwen3vl/qwen3vl.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/families/config_values.h"
#include "model/families/qwen_parts.h"

namespace rematch {
namespace {

// Interleaved mRoPE: pair j rotates with h (j%3 == 1, j < 3·section[1]), w (j%3 == 2, j <
// 3·section[2]) or t.
std::vector<int64_t> interleaved_axes(const std::vector<int64_t>& section, int64_t head_dim) {
  std::vector<int64_t> axes;
  for (int64_t j = 0; j < head_dim / 2; ++j)
    axes.push_back(j % 3 != 0 && j < 3 * section[static_cast<size_t>(j % 3)] ? j % 3 : 0);
  return axes;
}

LayerDescription text_layer(const TextDescription& text, int64_t layer_idx, double eps,
                            bool has_deepstack) {
  LayerDescription layer = qwen_layer(text, layer_idx, eps, false);
  const std::string attention = fmt::format("{}layers.{}.self_attn.", kQwenText, layer_idx);
  layer.q_norm = NormDescription{attention + "q_norm", text.head_dim, NormKind::kRms, eps};
  layer.k_norm = NormDescription{attention + "k_norm", text.head_dim, NormKind::kRms, eps};
  if (has_deepstack) layer.deepstack = layer_idx;
  return layer;
}

// @param num_features  of DeepStack; feature k is added after layer k
TextDescription read_text(JsonFields fields, bool has_null_kv_heads, int64_t num_features) {
  TextDescription text;
  text.vocab_size = config_count(fields, "vocab_size", 151936);
  text.hidden_size = config_count(fields, "hidden_size", 4096);
  text.intermediate_size = config_count(fields, "intermediate_size", 22016);
  const int64_t num_layers = config_layers(fields, "num_hidden_layers", 32);
  text.num_attention_heads = config_count(fields, "num_attention_heads", 32);
  text.num_key_value_heads = config_count(fields, "num_key_value_heads",
                                          has_null_kv_heads ? text.num_attention_heads : 32);
  text.head_dim = config_count(fields, "head_dim", 128);
  const double eps = config_positive(fields, "rms_norm_eps", 1e-6);
  require_config_text(fields, "hidden_act", {"silu"});
  if (fields.boolean_or("attention_bias", false)) {
    fields.fail("attention_bias", "biases of attention are not implemented");
  }
  JsonFields rope = config_rope(fields, {"default"});
  text.rope.theta = read_rope_theta(fields, rope, 500000);
  const std::vector<int64_t> section = config_counts(rope, "mrope_section", {24, 20, 20});
  if (section.size() != 3)
    rope.fail("mrope_section",
              fmt::format("expected three numbers (t, h, w), found {}", section.size()));
  text.rope.axis_of_pair = interleaved_axes(section, text.head_dim);
  text.pad_token_id = config_pad_token(fields, text.vocab_size);
  check_query_groups(fields, text);
  if (text.head_dim % 2 != 0)
    fields.fail("head_dim",
                fmt::format("{} is odd, and heads are rotated in halves", text.head_dim));
  set_qwen_ends(text, eps);
  for (int64_t i = 0; i < num_layers; ++i)
    text.layers.push_back(text_layer(text, i, eps, i < num_features));
  return text;
}

MergerDescription make_merger(const VisionDescription& vision, const std::string& module,
                              int64_t out_width, bool norm_after_shuffle) {
  const int64_t merged = vision.hidden_size * vision.merge_area();
  return {.norm = qwen_vision_norm(
              module + ".norm", norm_after_shuffle ? merged : vision.hidden_size, NormKind::kLayer),
          .norm_after_shuffle = norm_after_shuffle,
          .fc1 = {module + ".linear_fc1", merged, merged, true},
          .fc2 = {module + ".linear_fc2", out_width, merged, true},
          .activation = Activation::kGeluErf};
}

VisionBlockDescription vision_block(const VisionDescription& vision, int64_t block_idx) {
  VisionBlockDescription block = qwen_vision_block(vision, block_idx, NormKind::kLayer);
  const std::string mlp = fmt::format("{}blocks.{}.mlp.", kQwenVision, block_idx);
  const int64_t width = vision.hidden_size, inner = vision.intermediate_size;
  block.mlp = {.activation = Activation::kGeluTanh,
               .gate = std::nullopt,
               .up = {mlp + "linear_fc1", inner, width, true},
               .down = {mlp + "linear_fc2", width, inner, true}};
  return block;
}

VisionDescription read_vision(JsonFields fields) {
  VisionDescription vision;
  vision.hidden_size = config_count(fields, "hidden_size", 1152);
  vision.intermediate_size = config_count(fields, "intermediate_size", 4304);
  const int64_t depth = config_layers(fields, "depth", 27, 0);
  vision.num_heads = config_count(fields, "num_heads", 16);
  vision.in_channels = config_count(fields, "in_channels", 3);
  vision.patch_size = config_side(fields, "patch_size", 16);
  vision.temporal_patch_size = config_side(fields, "temporal_patch_size", 2);
  vision.spatial_merge_size = config_count(fields, "spatial_merge_size", 2);
  vision.num_position_embeddings = config_count(fields, "num_position_embeddings", 2304);
  const int64_t out_width = config_count(fields, "out_hidden_size", 3584);
  const std::vector<int64_t> taps = config_counts(fields, "deepstack_visual_indexes", {8, 16, 24});
  require_config_text(fields, "hidden_act", {"gelu_pytorch_tanh"});
  JsonFields rope = config_rope(fields, {"axial", "default"});
  vision.rope_theta = read_rope_theta(fields, rope, 10000);

  check_vision_heads(fields, vision);
  if (std::ssize(taps) > depth)
    fields.fail("deepstack_visual_indexes", fmt::format("{} of {} blocks", taps.size(), depth));
  for (const int64_t block : taps) {
    if (block >= depth)
      fields.fail("deepstack_visual_indexes", fmt::format("block {} of {}", block, depth));
  }
  vision.patch_embed = {kQwenVision + "patch_embed.proj", vision.hidden_size, vision.patch_width(),
                        true};
  vision.position_table = kQwenVision + "pos_embed";
  for (int64_t i = 0; i < depth; ++i) vision.blocks.push_back(vision_block(vision, i));
  vision.merger = make_merger(vision, kQwenVision + "merger", out_width, false);
  for (size_t k = 0; k < taps.size(); ++k) {
    // Features are in block order; a block's merger is its first position in the list.
    int64_t& merger = vision.blocks[static_cast<size_t>(taps[k])].deepstack_merger;
    if (merger < 0) merger = static_cast<int64_t>(k);
    vision.deepstack_mergers.push_back(make_merger(
        vision, fmt::format("{}deepstack_merger_list.{}", kQwenVision, k), out_width, true));
  }
  return vision;
}

ModelDescription describe(const Json& config, const JsonOrigin& origin) {
  JsonFields root(config, origin);
  ModelDescription model;
  const Json& text = root.at("text_config");
  model.vision = read_vision(root.object("vision_config"));
  const auto feeds = [](const VisionBlockDescription& block) {
    return block.deepstack_merger >= 0;
  };
  const bool has_null_kv_heads = is_explicit_null(text, "num_key_value_heads");
  model.text =
      read_text(root.object("text_config"), has_null_kv_heads,
                std::count_if(model.vision.blocks.begin(), model.vision.blocks.end(), feeds));
  model.tie_word_embeddings = root.boolean_or("tie_word_embeddings", false);
  model.image_token_id = config_count(root, "image_token_id", 151655, 0);
  model.part_of.modules = {{kQwenVision + "merger", ParameterPart::kAligner},
                           {kQwenVision + "deepstack_merger_list", ParameterPart::kAligner},
                           {"model.visual", ParameterPart::kVit}};
  check_visual_width(root, model);
  return model;
}

}  // namespace

Family qwen3vl_family() {
  return {.title = "dense Qwen3-VL",
          .model_type = "qwen3_vl",
          .architectures = {"Qwen3VLForConditionalGeneration"},
          .describe = describe,
          .tokenizer_classes = qwen2_tokenizer_classes(),
          .split_pattern = qwen2_split_pattern(),
          .stock_answer_format = "qwen_json"};
}

}  // namespace rematch
