#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow/grid.h"

namespace rematch {

// A model in names and numbers: a family writes it (family.h), every engine reads it. No other code
// depends on a family's layout. A "module" is a checkpoint name without its last component;
// parameters are MODULE.weight and sometimes MODULE.bias.

/// One of the three parts of a model.
enum class ParameterPart { kVit, kAligner, kLlm };

/// Maps a parameter to its part by checkpoint name; also works for adapters.
struct ParameterParts {
  /// Modules and their parts; the first that contains the parameter decides, llm if none does.
  std::vector<std::pair<std::string, ParameterPart>> modules;
  ParameterPart operator()(const std::string& parameter) const;
};

/// Pairs of a prefix of tensor names in weights files and its replacement. The first match applies;
/// other names do not change.
using FileNames = std::vector<std::pair<std::string, std::string>>;

enum class Activation { kSilu, kGeluTanh, kGeluErf };
enum class NormKind { kRms, kLayer };

/// A norm over `width` values; a LayerNorm has a bias.
struct NormDescription {
  std::string module;
  int64_t width = 0;
  NormKind kind = NormKind::kRms;
  double eps = 1e-6;
};

/// x·Wᵀ + b. Weight [num_outputs, num_inputs].
struct LinearDescription {
  std::string module;
  int64_t num_outputs = 0;
  int64_t num_inputs = 0;
  bool has_bias = false;
};

/// down(activation(gate(x)) · up(x)); without a gate down(activation(up(x))).
struct MlpDescription {
  Activation activation = Activation::kSilu;
  std::optional<LinearDescription> gate;
  LinearDescription up, down;
};

/// Rotates the halves of a head: pair j by position[axis_of_pair[j]] · theta^(−2j / head_dim).
struct RopeDescription {
  double theta = 10000;
  std::vector<int64_t> axis_of_pair;  ///< [head_dim / 2]: 0 temporal, 1 height, 2 width
};

/// A decoder layer: x += o(attention(norm x)), x += mlp(norm x).
struct LayerDescription {
  NormDescription attention_norm;
  LinearDescription q, k, v, o;
  std::optional<NormDescription> q_norm, k_norm;  ///< of each head, before the rotation
  NormDescription mlp_norm;
  MlpDescription mlp;
  int64_t window = 0;  ///< tokens that a token attends to, including itself; 0 = all before it
  /// index of the visual feature added at the image pads after the layer; -1 = none
  int64_t deepstack = -1;
};

/// The text tower. Heads and widths are the same in every layer, because the layers share one
/// cache.
struct TextDescription {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  RopeDescription rope;
  std::string embedding;      ///< module, [vocab_size, hidden_size]
  int64_t pad_token_id = -1;  ///< embedding row without gradient; -1 = none
  std::vector<LayerDescription> layers;
  NormDescription final_norm;
  LinearDescription head;

  int64_t num_layers() const { return static_cast<int64_t>(layers.size()); }
};

/// A block of the vision tower: x += proj(attention(norm1 x)), x += mlp(norm2 x). Attention is full
/// inside a frame.
struct VisionBlockDescription {
  NormDescription norm1;
  LinearDescription qkv;  ///< queries, keys and values, stacked
  LinearDescription proj;
  NormDescription norm2;
  MlpDescription mlp;
  /// side in patches of the squares within which patches attend, the same in all blocks; 0 = the
  /// whole frame
  int64_t window = 0;
  /// index of the deepstack merger that reads the block's output; -1 = none
  int64_t deepstack_merger = -1;
};

/// Merges merge² patches into one visual token: fc2(activation(fc1(norm x))).
struct MergerDescription {
  NormDescription norm;
  bool norm_after_shuffle = false;  ///< norm over all patches of a token, not over each
  LinearDescription fc1, fc2;
  Activation activation = Activation::kGeluErf;
};

/// The vision tower with its mergers.
struct VisionDescription {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t in_channels = 3;
  int64_t patch_size = 16;
  int64_t temporal_patch_size = 2;
  int64_t spatial_merge_size = 2;
  /// row and column positions each rotate half of a head
  double rope_theta = 10000;
  /// a convolution: weight [hidden_size, channels, temporal, side, side]
  LinearDescription patch_embed;
  /// module of the learned positions, a square table; empty = none
  std::string position_table;
  int64_t num_position_embeddings = 0;  ///< its rows
  std::vector<VisionBlockDescription> blocks;
  MergerDescription merger;
  std::vector<MergerDescription> deepstack_mergers;

  int64_t head_dim() const { return hidden_size / num_heads; }
  int64_t out_hidden_size() const { return merger.fc2.num_outputs; }
  /// values of a patch
  int64_t patch_width() const {
    return in_channels * temporal_patch_size * patch_size * patch_size;
  }
  /// Side in patches of the attention windows of some blocks; 0 = no block has windows.
  int64_t window() const;
  int64_t merge_area() const { return spatial_merge_size * spatial_merge_size; }
  /// Image pads of an image of t·h·w patches.
  int64_t num_tokens(const GridThw& grid_thw) const {
    return grid_thw[0] * grid_thw[1] * grid_thw[2] / merge_area();
  }
};

struct ModelDescription {
  TextDescription text;
  VisionDescription vision;
  bool tie_word_embeddings = false;  ///< as in config.json; the weights decide (Model::tied)
  int64_t image_token_id = 0;        ///< the image pad
  ParameterParts part_of;
  FileNames file_names;  ///< for checkpoints with other module names

  /// Every Linear that can have an adapter: blocks, mergers, layers, head.
  std::vector<LinearDescription> linears() const;
};

}  // namespace rematch
