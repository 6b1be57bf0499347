#pragma once
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/families/description.h"

namespace rematch {

// Shared by the Qwen families. All checks throw UserError (data) naming the key.

/// Tokenizers of the Qwen2 generation: the classes of tokenizer_config.json, and their split
/// pattern.
Strings qwen2_tokenizer_classes();
std::string qwen2_split_pattern();

/// Prefixes of the modules of the text and the vision tower.
inline const std::string kQwenText = "model.language_model.", kQwenVision = "model.visual.";

/// down(silu(gate(x)) · up(x)), with the modules gate_proj, up_proj and down_proj below `prefix`.
MlpDescription gated_mlp(const std::string& prefix, int64_t width, int64_t inner, bool has_bias);
/// A decoder layer without head norms.
/// @param has_bias  of queries, keys and values
LayerDescription qwen_layer(const TextDescription& text, int64_t layer_idx, double eps,
                            bool has_bias);
/// A block of the vision tower without its MLP.
VisionBlockDescription qwen_vision_block(const VisionDescription& vision, int64_t block_idx,
                                         NormKind norm);
/// A norm of the vision tower.
NormDescription qwen_vision_norm(const std::string& module, int64_t width, NormKind kind);
/// Sets embedding, final norm and head.
void set_qwen_ends(TextDescription& text, double eps);
/// `rope_theta` of a tower's rotary settings, else of the tower itself.
double read_rope_theta(JsonFields& tower, JsonFields& rope, double fallback);

/// Checks that every key/value head serves the same number of query heads.
void check_query_groups(JsonFields& fields, const TextDescription& text);
/// Checks that heads of the vision tower can be rotated by rows and columns.
void check_vision_heads(JsonFields& fields, const VisionDescription& vision);
/// Checks that visual features are as wide as the embeddings that they replace.
void check_visual_width(JsonFields& root, const ModelDescription& model);

}  // namespace rematch
