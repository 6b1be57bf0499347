#include "model/families/qwen_parts.h"

#include <fmt/core.h>

#include "model/families/config_values.h"

namespace rematch {

Strings qwen2_tokenizer_classes() { return {"Qwen2Tokenizer", "Qwen2TokenizerFast"}; }

// @source transformers, qwen2 tokenizer
std::string qwen2_split_pattern() {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

MlpDescription gated_mlp(const std::string& prefix, int64_t width, int64_t inner, bool has_bias) {
  return {.activation = Activation::kSilu,
          .gate = LinearDescription{prefix + "gate_proj", inner, width, has_bias},
          .up = {prefix + "up_proj", inner, width, has_bias},
          .down = {prefix + "down_proj", width, inner, has_bias}};
}

LayerDescription qwen_layer(const TextDescription& text, int64_t layer_idx, double eps,
                            bool has_bias) {
  const std::string prefix = fmt::format("{}layers.{}.", kQwenText, layer_idx),
                    attention = prefix + "self_attn.";
  const int64_t hidden = text.hidden_size, q_width = text.num_attention_heads * text.head_dim,
                kv_width = text.num_key_value_heads * text.head_dim;
  return {.mixer_norm = {prefix + "input_layernorm", hidden, NormKind::kRms, eps},
          .mixer = AttentionDescription{.q = {attention + "q_proj", q_width, hidden, has_bias},
                                        .k = {attention + "k_proj", kv_width, hidden, has_bias},
                                        .v = {attention + "v_proj", kv_width, hidden, has_bias},
                                        .o = {attention + "o_proj", hidden, q_width},
                                        .q_norm = std::nullopt,
                                        .k_norm = std::nullopt},
          .mlp_norm = {prefix + "post_attention_layernorm", hidden, NormKind::kRms, eps},
          .mlp = gated_mlp(prefix + "mlp.", hidden, text.intermediate_size, false)};
}

NormDescription qwen_vision_norm(const std::string& module, int64_t width, NormKind kind) {
  return {module, width, kind, 1e-6};
}

VisionBlockDescription qwen_vision_block(const VisionDescription& vision, int64_t block_idx,
                                         NormKind norm) {
  const std::string prefix = fmt::format("{}blocks.{}.", kQwenVision, block_idx);
  const int64_t width = vision.hidden_size;
  return {.norm1 = qwen_vision_norm(prefix + "norm1", width, norm),
          .qkv = {prefix + "attn.qkv", 3 * width, width, true},
          .proj = {prefix + "attn.proj", width, width, true},
          .norm2 = qwen_vision_norm(prefix + "norm2", width, norm),
          .mlp = {}};
}

void set_qwen_ends(TextDescription& text, double eps) {
  text.embedding = kQwenText + "embed_tokens";
  text.final_norm = {kQwenText + "norm", text.hidden_size, NormKind::kRms, eps};
  text.head = {"lm_head", text.vocab_size, text.hidden_size};
}

double read_rope_theta(JsonFields& tower, JsonFields& rope, double fallback) {
  return config_positive(rope, "rope_theta", config_positive(tower, "rope_theta", fallback));
}

void check_query_groups(JsonFields& fields, const TextDescription& text) {
  if (text.num_attention_heads % text.num_key_value_heads == 0) return;
  fields.fail("num_key_value_heads",
              fmt::format("{} query heads are not a multiple of {} key/value heads",
                          text.num_attention_heads, text.num_key_value_heads));
}

void check_vision_heads(JsonFields& fields, const VisionDescription& vision) {
  if (vision.hidden_size % vision.num_heads == 0 && vision.hidden_size / vision.num_heads % 4 == 0)
    return;
  fields.fail("num_heads", fmt::format("{} channels over {} heads; each head needs a multiple of 4 "
                                       "(rows and columns are rotated in pairs)",
                                       vision.hidden_size, vision.num_heads));
}

void check_visual_width(JsonFields& root, const ModelDescription& model) {
  if (model.vision.out_hidden_size() == model.text.hidden_size) return;
  root.fail(
      "vision_config.out_hidden_size",
      fmt::format("{} differs from the text tower's hidden_size {}, but visual features replace "
                  "embeddings",
                  model.vision.out_hidden_size(), model.text.hidden_size));
}

}  // namespace rematch
