#pragma once
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/families/description.h"

namespace rematch {

// What the Qwen families have in common. All checks throw UserError (data) naming the key.

/// Tokenizers of the Qwen2 generation: the classes of tokenizer_config.json, and their split
/// pattern.
std::vector<std::string> qwen2_tokenizer_classes();
std::string qwen2_split_pattern();

/// down(silu(gate(x)) · up(x)), with the modules gate_proj, up_proj and down_proj below `prefix`.
MlpDescription gated_mlp(const std::string& prefix, int64_t width, int64_t inner, bool has_bias);

/// Every key/value head serves as many query heads.
void check_query_groups(JsonFields& fields, const TextDescription& text);
/// Heads of the vision tower can be rotated by rows and columns.
void check_vision_heads(JsonFields& fields, const VisionDescription& vision);
/// Visual rows are as wide as the embeddings they replace.
void check_visual_width(JsonFields& root, const ModelDescription& model);

}  // namespace rematch
