#include "model/families/qwen3vl/qwen3vl.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/families/config_values.h"
#include "model/families/qwen3_parts.h"
#include "model/families/qwen_parts.h"

namespace rematch {
namespace {

LayerDescription text_layer(const TextDescription& text, int64_t layer_idx, double eps,
                            bool has_deepstack) {
  LayerDescription layer = qwen_layer(text, layer_idx, eps, false);
  const std::string module = fmt::format("{}layers.{}.self_attn.", kQwenText, layer_idx);
  auto& attention = std::get<AttentionDescription>(layer.mixer);
  attention.q_norm = NormDescription{module + "q_norm", text.head_dim, NormKind::kRms, eps};
  attention.k_norm = NormDescription{module + "k_norm", text.head_dim, NormKind::kRms, eps};
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
  text.rope.axis_of_pair = read_interleaved_axes(rope, {24, 20, 20}, text.head_dim / 2);
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

VisionDescription read_vision(JsonFields fields) {
  VisionDescription vision = read_qwen3_vision(fields);
  const auto depth = std::ssize(vision.blocks);
  const std::vector<int64_t> taps = config_counts(fields, "deepstack_visual_indexes", {8, 16, 24});
  if (std::ssize(taps) > depth)
    fields.fail("deepstack_visual_indexes", fmt::format("{} of {} blocks", taps.size(), depth));
  for (const int64_t block : taps) {
    if (block >= depth)
      fields.fail("deepstack_visual_indexes", fmt::format("block {} of {}", block, depth));
  }
  for (size_t k = 0; k < taps.size(); ++k) {
    // Features are in block order; a block's merger is its first position in the list.
    int64_t& merger = vision.blocks[taps[k]].deepstack_merger;
    if (merger < 0) merger = static_cast<int64_t>(k);
    vision.deepstack_mergers.push_back(
        qwen3_merger(vision, fmt::format("{}deepstack_merger_list.{}", kQwenVision, k),
                     vision.out_hidden_size(), true));
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
  model.text = read_text(root.object("text_config"), has_null_kv_heads,
                         std::ranges::count_if(model.vision.blocks, feeds));
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
