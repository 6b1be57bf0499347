#include "model/families/qwen3_5/qwen3_5.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "model/families/config_values.h"
#include "model/families/qwen3_parts.h"
#include "model/families/qwen_parts.h"

namespace rematch {
namespace {

constexpr const char* kDelta = "linear_attention";
constexpr const char* kAttention = "full_attention";

// Combining marks belong to letters.
// @source transformers, qwen3_5 tokenizer
constexpr const char* kSplitPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

NormDescription text_norm(const std::string& module, int64_t width, double eps) {
  return {module, width, NormKind::kRmsOffset, eps};
}

AttentionDescription gated_attention(const TextDescription& text, const std::string& prefix,
                                     double eps) {
  const int64_t hidden = text.hidden_size, q_width = text.num_attention_heads * text.head_dim,
                kv_width = text.num_key_value_heads * text.head_dim;
  return {.q = {prefix + "q_proj", 2 * q_width, hidden},
          .k = {prefix + "k_proj", kv_width, hidden},
          .v = {prefix + "v_proj", kv_width, hidden},
          .o = {prefix + "o_proj", hidden, q_width},
          .q_norm = text_norm(prefix + "q_norm", text.head_dim, eps),
          .k_norm = text_norm(prefix + "k_norm", text.head_dim, eps),
          .has_output_gate = true};
}

// Sizes of the delta rule, the same in every layer.
DeltaDescription read_delta(JsonFields& fields) {
  DeltaDescription delta;
  delta.num_key_heads = config_count(fields, "linear_num_key_heads", 16);
  delta.num_value_heads = config_count(fields, "linear_num_value_heads", 32);
  delta.key_head_dim = config_count(fields, "linear_key_head_dim", 128);
  delta.value_head_dim = config_count(fields, "linear_value_head_dim", 128);
  delta.conv_kernel = config_layers(fields, "linear_conv_kernel_dim", 4, 2);
  if (delta.num_value_heads % delta.num_key_heads != 0) {
    fields.fail("linear_num_value_heads", fmt::format("{} is not a multiple of {} key heads",
                                                      delta.num_value_heads, delta.num_key_heads));
  }
  // vLLM's name for the dtype of the states, which are always float32 here.
  require_config_text(fields, "mamba_ssm_dtype", {"float32"});
  return delta;
}

// Names the parts of a layer. Other servers ignore adapters on in_b and in_a, so `all-linear`
// leaves these out.
DeltaDescription delta_layer(DeltaDescription delta, const std::string& prefix, int64_t hidden,
                             double eps) {
  const int64_t heads = delta.num_value_heads;
  delta.in_qkv = {prefix + "in_proj_qkv", delta.num_channels(), hidden};
  delta.in_z = {prefix + "in_proj_z", delta.value_width(), hidden};
  delta.in_b = {prefix + "in_proj_b", heads, hidden, false, /*in_all_linear=*/false};
  delta.in_a = {prefix + "in_proj_a", heads, hidden, false, /*in_all_linear=*/false};
  delta.out = {prefix + "out_proj", hidden, delta.value_width()};
  delta.conv = prefix + "conv1d";
  delta.a_log = prefix + "A_log";
  delta.dt_bias = prefix + "dt_bias";
  delta.norm = {prefix + "norm", delta.value_head_dim, NormKind::kRms, eps};
  return delta;
}

// True for the layers of attention: by layer_types, else every n-th.
std::vector<bool> read_attention_layers(JsonFields& fields, int64_t num_layers) {
  std::vector<bool> is_attention;
  if (!fields.has("layer_types")) {
    const int64_t interval = config_count(fields, "full_attention_interval", 4);
    for (int64_t i = 0; i < num_layers; ++i) is_attention.push_back((i + 1) % interval == 0);
    return is_attention;
  }
  for (const std::string& type : fields.texts("layer_types")) {
    if (type != kDelta && type != kAttention) {
      fields.fail("layer_types",
                  fmt::format("\"{}\" is not implemented, only \"{}\" and \"{}\" are", type, kDelta,
                              kAttention));
    }
    is_attention.push_back(type == kAttention);
  }
  if (std::ssize(is_attention) != num_layers) {
    fields.fail("layer_types",
                fmt::format("{} types for {} layers", is_attention.size(), num_layers));
  }
  return is_attention;
}

// The rotation of the first part of a head.
RopeDescription read_rope(JsonFields& fields, int64_t head_dim) {
  JsonFields rope = config_rope(fields, {"default"});
  const double share = config_positive(rope, "partial_rotary_factor",
                                       config_positive(fields, "partial_rotary_factor", 0.25));
  const auto width = static_cast<int64_t>(static_cast<double>(head_dim) * share);
  if (width < 2 || width > head_dim || width % 2 != 0) {
    rope.fail("partial_rotary_factor",
              fmt::format("rotates {} of {} values of a head; expected an even number from 2",
                          width, head_dim));
  }
  return {.theta = read_rope_theta(fields, rope, 10000),
          .axis_of_pair = read_interleaved_axes(rope, {11, 11, 10}, width / 2)};
}

void refuse_other_layers(JsonFields& fields) {
  require_config_text(fields, "hidden_act", {"silu"});
  if (fields.boolean_or("attention_bias", false))
    fields.fail("attention_bias", "biases of attention are not implemented");
  if (!fields.boolean_or("attn_output_gate", true))
    fields.fail("attn_output_gate", "attention without an output gate is not implemented");
}

TextDescription read_text(JsonFields fields, bool has_null_kv_heads) {
  TextDescription text;
  text.vocab_size = config_count(fields, "vocab_size", 248320);
  text.hidden_size = config_count(fields, "hidden_size", 4096);
  text.intermediate_size = config_count(fields, "intermediate_size", 12288);
  const int64_t num_layers = config_layers(fields, "num_hidden_layers", 32);
  text.num_attention_heads = config_count(fields, "num_attention_heads", 16);
  text.num_key_value_heads =
      config_count(fields, "num_key_value_heads", has_null_kv_heads ? text.num_attention_heads : 4);
  text.head_dim = config_count(fields, "head_dim", 256);
  const double eps = config_positive(fields, "rms_norm_eps", 1e-6);
  refuse_other_layers(fields);
  check_query_groups(fields, text);
  text.rope = read_rope(fields, text.head_dim);
  text.pad_token_id = config_pad_token(fields, text.vocab_size);
  set_qwen_ends(text, eps);
  text.final_norm.kind = NormKind::kRmsOffset;
  const DeltaDescription delta = read_delta(fields);
  const std::vector<bool> is_attention = read_attention_layers(fields, num_layers);
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string prefix = fmt::format("{}layers.{}.", kQwenText, i);
    LayerDescription layer{
        .mixer_norm = text_norm(prefix + "input_layernorm", text.hidden_size, eps),
        .mixer = AttentionDescription(),
        .mlp_norm = text_norm(prefix + "post_attention_layernorm", text.hidden_size, eps),
        .mlp = gated_mlp(prefix + "mlp.", text.hidden_size, text.intermediate_size, false)};
    if (is_attention[i])
      layer.mixer = gated_attention(text, prefix + "self_attn.", eps);
    else
      layer.mixer = delta_layer(delta, prefix + "linear_attn.", text.hidden_size, eps);
    text.layers.push_back(std::move(layer));
  }
  return text;
}

VisionDescription read_vision(JsonFields fields) {
  VisionDescription vision = read_qwen3_vision(fields);
  if (!config_counts(fields, "deepstack_visual_indexes", {}).empty())
    fields.fail("deepstack_visual_indexes", "this family has no DeepStack");
  return vision;
}

ModelDescription describe(const Json& config, const JsonOrigin& origin) {
  JsonFields root(config, origin);
  ModelDescription model;
  const bool has_null_kv_heads = is_explicit_null(root.at("text_config"), "num_key_value_heads");
  model.vision = read_vision(root.object("vision_config"));
  model.text = read_text(root.object("text_config"), has_null_kv_heads);
  model.tie_word_embeddings = root.boolean_or("tie_word_embeddings", false);
  model.image_token_id = config_count(root, "image_token_id", 248056, 0);
  model.part_of.modules = {{kQwenVision + "merger", ParameterPart::kAligner},
                           {"model.visual", ParameterPart::kVit}};
  model.carried = {"mtp."};  // the layers of multi-token prediction
  check_visual_width(root, model);
  return model;
}

}  // namespace

Family qwen3_5_family() {
  return {.title = "dense Qwen3.5",
          .model_type = "qwen3_5",
          .architectures = {"Qwen3_5ForConditionalGeneration"},
          .describe = describe,
          .tokenizer_classes = {"Qwen3_5Tokenizer", "Qwen3_5TokenizerFast"},
          .split_pattern = kSplitPattern,
          .stock_answer_format = "qwen_json"};
}

}  // namespace rematch
