#include "model/families/qwen_parts.h"

#include <fmt/core.h>

namespace rematch {

std::vector<std::string> qwen2_tokenizer_classes() {
  return {"Qwen2Tokenizer", "Qwen2TokenizerFast"};
}

// @source transformers, qwen2 tokenizer
std::string qwen2_split_pattern() {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

MlpDescription gated_mlp(const std::string& prefix, int64_t width, int64_t inner, bool has_bias) {
  return {.activation = Activation::kSilu,
          .gate = LinearDescription{prefix + "gate_proj", inner, width, has_bias},
          .up = {prefix + "up_proj", inner, width, has_bias},
          .down = {prefix + "down_proj", width, inner, has_bias}};
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
  root.fail("vision_config.out_hidden_size",
            fmt::format(
                "{} is not the text tower's hidden_size {}, though visual rows replace embeddings",
                model.vision.out_hidden_size(), model.text.hidden_size));
}

}  // namespace rematch
