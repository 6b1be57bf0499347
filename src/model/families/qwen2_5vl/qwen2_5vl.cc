#include "model/families/qwen2_5vl/qwen2_5vl.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "model/families/config_values.h"
#include "model/families/qwen_parts.h"

namespace rematch {
namespace {

// mRoPE in sections: the pairs of section i rotate with axis i % 3 (t, h, w).
std::vector<int64_t> section_axes(JsonFields& rope, int64_t head_dim) {
  const std::vector<int64_t> sections = config_counts(rope, "mrope_section", {16, 24, 24});
  const int64_t num_pairs = std::accumulate(sections.begin(), sections.end(), int64_t{0});
  if (sections.size() < 3 || num_pairs != head_dim / 2) {
    rope.fail(
        "mrope_section",
        fmt::format(
            "{} sections with {} pairs in total; expected three (t, h, w) with {}, half of a head",
            sections.size(), num_pairs, head_dim / 2));
  }
  std::vector<int64_t> axes;
  for (size_t i = 0; i < sections.size(); ++i)
    axes.insert(axes.end(), static_cast<size_t>(sections[i]), static_cast<int64_t>(i % 3));
  return axes;
}

void refuse_sliding_windows(JsonFields& fields) {
  if (fields.boolean_or("use_sliding_window", false)) {
    fields.fail("use_sliding_window", "attention in a sliding window is not implemented");
  }
  for (const std::string& type : fields.texts("layer_types")) {
    if (type != "full_attention")
      fields.fail("layer_types",
                  fmt::format("\"{}\" is not implemented, only \"full_attention\" is", type));
  }
}

TextDescription read_text(JsonFields fields, bool has_null_kv_heads) {
  TextDescription text;
  text.vocab_size = config_count(fields, "vocab_size", 152064);
  text.hidden_size = config_count(fields, "hidden_size", 8192);
  text.intermediate_size = config_count(fields, "intermediate_size", 29568);
  const int64_t num_layers = config_layers(fields, "num_hidden_layers", 80);
  text.num_attention_heads = config_count(fields, "num_attention_heads", 64);
  text.num_key_value_heads =
      config_count(fields, "num_key_value_heads", has_null_kv_heads ? text.num_attention_heads : 8);
  check_query_groups(fields, text);
  if (text.hidden_size % text.num_attention_heads != 0 ||
      text.hidden_size / text.num_attention_heads % 2 != 0) {
    fields.fail("num_attention_heads",
                fmt::format("{} channels over {} heads; each needs an even number",
                            text.hidden_size, text.num_attention_heads));
  }
  text.head_dim = text.hidden_size / text.num_attention_heads;
  if (config_count(fields, "head_dim", text.head_dim) != text.head_dim) {
    fields.fail(
        "head_dim",
        fmt::format("only hidden_size / num_attention_heads, {}, is implemented", text.head_dim));
  }
  const double eps = config_positive(fields, "rms_norm_eps", 1e-5);
  require_config_text(fields, "hidden_act", {"silu"});
  refuse_sliding_windows(fields);
  JsonFields rope = config_rope(fields, {"default", "mrope"});
  text.rope.theta = read_rope_theta(fields, rope, 1000000);
  text.rope.axis_of_pair = section_axes(rope, text.head_dim);
  text.pad_token_id = config_pad_token(fields, text.vocab_size);
  set_qwen_ends(text, eps);
  for (int64_t i = 0; i < num_layers; ++i) text.layers.push_back(qwen_layer(text, i, eps, true));
  return text;
}

VisionBlockDescription vision_block(const VisionDescription& vision, int64_t block_idx,
                                    int64_t window) {
  VisionBlockDescription block = qwen_vision_block(vision, block_idx, NormKind::kRms);
  block.mlp = gated_mlp(fmt::format("{}blocks.{}.mlp.", kQwenVision, block_idx), vision.hidden_size,
                        vision.intermediate_size, true);
  block.window = window;
  return block;
}

VisionDescription read_vision(JsonFields fields) {
  VisionDescription vision;
  vision.hidden_size = config_count(fields, "hidden_size", 3584);
  vision.intermediate_size = config_count(fields, "intermediate_size", 3420);
  const int64_t depth = config_layers(fields, "depth", 32, 0);
  vision.num_heads = config_count(fields, "num_heads", 16);
  vision.in_channels = config_count(fields, "in_channels", 3);
  vision.patch_size = config_side(fields, "patch_size", 14);
  vision.temporal_patch_size = config_side(fields, "temporal_patch_size", 2);
  vision.spatial_merge_size = config_count(fields, "spatial_merge_size", 2);
  const int64_t out_width = config_count(fields, "out_hidden_size", 3584);
  const int64_t window_pixels = config_count(fields, "window_size", 112);
  const std::vector<int64_t> full = config_counts(fields, "fullatt_block_indexes", {7, 15, 23, 31});
  require_config_text(fields, "hidden_act", {"silu"});
  JsonFields rope = config_rope(fields, {"axial", "default"});
  vision.rope_theta = read_rope_theta(fields, rope, 10000);
  check_vision_heads(fields, vision);
  // Whole visual tokens, rounded down.
  const int64_t window =
      window_pixels / vision.spatial_merge_size / vision.patch_size * vision.spatial_merge_size;
  if (window == 0)
    fields.fail("window_size",
                fmt::format("{} pixels are less than a visual token", window_pixels));
  vision.patch_embed = {kQwenVision + "patch_embed.proj", vision.hidden_size, vision.patch_width(),
                        false};
  for (int64_t i = 0; i < depth; ++i) {
    const bool is_full = contains(full, i);
    vision.blocks.push_back(vision_block(vision, i, is_full ? 0 : window));
  }
  const int64_t merged = vision.hidden_size * vision.merge_area();
  const std::string merger = kQwenVision + "merger.";
  vision.merger = {.norm = qwen_vision_norm(merger + "ln_q", vision.hidden_size, NormKind::kRms),
                   .fc1 = {merger + "mlp.0", merged, merged, true},
                   .fc2 = {merger + "mlp.2", out_width, merged, true},
                   .activation = Activation::kGeluErf};
  return vision;
}

ModelDescription describe(const Json& config, const JsonOrigin& origin) {
  JsonFields root(config, origin);
  ModelDescription model;
  model.vision = read_vision(root.object("vision_config"));
  // Older files have the text tower's keys at the top level.
  const bool is_nested = root.has("text_config");
  const Json& text = is_nested ? root.at("text_config") : config;
  const bool has_null_kv_heads = is_explicit_null(text, "num_key_value_heads");
  JsonFields text_fields = is_nested ? root.object("text_config") : root;
  // transformers 4 wrote the flag into text_config.
  model.tie_word_embeddings = root.boolean_or("tie_word_embeddings", false) ||
                              text_fields.boolean_or("tie_word_embeddings", false);
  model.text = read_text(text_fields, has_null_kv_heads);
  model.image_token_id = config_count(root, "image_token_id", 151655, 0);
  model.part_of.modules = {{kQwenVision + "merger", ParameterPart::kAligner},
                           {"model.visual", ParameterPart::kVit}};
  // Names in published files and in those that transformers writes for this family.
  model.file_names = {{"visual.", kQwenVision},
                      {"model.layers.", kQwenText + "layers."},
                      {"model.embed_tokens.", kQwenText + "embed_tokens."},
                      {"model.norm.", kQwenText + "norm."}};
  check_visual_width(root, model);
  return model;
}

}  // namespace

Family qwen2_5vl_family() {
  return {.title = "Qwen2.5-VL",
          .model_type = "qwen2_5_vl",
          .architectures = {"Qwen2_5_VLForConditionalGeneration"},
          .describe = describe,
          .tokenizer_classes = qwen2_tokenizer_classes(),
          .split_pattern = qwen2_split_pattern(),
          .stock_answer_format = "qwen2_5_json"};
}

}  // namespace rematch
