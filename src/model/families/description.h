#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/flow/grid.h"
#include "base/strings.h"

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
/// kRmsOffset multiplies by 1 + weight in float32 and casts once; kRms casts, then multiplies.
enum class NormKind { kRms, kRmsOffset, kLayer };

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
  /// false: the target `all-linear` leaves it out
  bool in_all_linear = true;
};

/// down(activation(gate(x)) · up(x)); without a gate down(activation(up(x))).
struct MlpDescription {
  Activation activation = Activation::kSilu;
  std::optional<LinearDescription> gate;
  LinearDescription up, down;
};

/// Rotates the first width() values of a head as two halves: pair j by position[axis_of_pair[j]] ·
/// theta^(−2j / width). The rest of the head is not rotated.
struct RopeDescription {
  double theta = 10000;
  std::vector<int64_t> axis_of_pair;  ///< [width / 2]: 0 temporal, 1 height, 2 width

  int64_t width() const { return 2 * std::ssize(axis_of_pair); }
};

/// Causal attention with grouped queries. Its cache grows with the sequence: one key and one value
/// per token and key/value head.
struct AttentionDescription {
  LinearDescription q, k, v, o;
  std::optional<NormDescription> q_norm, k_norm;  ///< of each head, before the rotation
  /// q has 2·head_dim outputs per head: the query, then a gate; the input of o is multiplied by
  /// sigmoid(gate)
  bool has_output_gate = false;
  int64_t window = 0;  ///< tokens that a token attends to, including itself; 0 = all before it
};

/// Gated delta rule. Its cache has a fixed size: the last conv_kernel − 1 inputs of the
/// convolution, and a float32 state [key_head_dim, value_head_dim] per value head. Per token:
///   q, k, v = split(silu(conv(in_qkv x))); q, k = l2norm(q) · key_head_dim^-½, l2norm(k)
///   β = sigmoid(in_b x); g = −exp(a_log) · softplus(in_a x + dt_bias)       (float32)
///   S = e^g · S; S += k (β (v − kᵀS))ᵀ; y = out(norm(qᵀS) · silu(in_z x))     (float32)
struct DeltaDescription {
  int64_t num_key_heads = 0;
  int64_t num_value_heads = 0;  ///< a multiple of num_key_heads; consecutive ones share a key head
  int64_t key_head_dim = 0;
  int64_t value_head_dim = 0;
  int64_t conv_kernel = 4;
  LinearDescription in_qkv;      ///< num_channels() outputs: queries, keys, values
  LinearDescription in_z;        ///< value_width() outputs
  LinearDescription in_b, in_a;  ///< num_value_heads outputs
  LinearDescription out;
  /// causal convolution of each channel alone, without bias: MODULE.weight [num_channels, 1,
  /// conv_kernel]; the last tap is the current token
  std::string conv;
  std::string a_log, dt_bias;  ///< names of parameters [num_value_heads]
  NormDescription norm;        ///< of each value head: kRms with a plain weight, in float32

  int64_t key_width() const { return num_key_heads * key_head_dim; }
  int64_t value_width() const { return num_value_heads * value_head_dim; }
  int64_t num_channels() const { return 2 * key_width() + value_width(); }
  /// values of a sequence's state S
  int64_t state_size() const { return num_value_heads * key_head_dim * value_head_dim; }
  /// values of a sequence's window of the convolution
  int64_t window_size() const { return (conv_kernel - 1) * num_channels(); }
};

/// The part of a decoder layer that mixes tokens.
using MixerDescription = std::variant<AttentionDescription, DeltaDescription>;

/// A decoder layer: x += mixer(norm x), x += mlp(norm x).
struct LayerDescription {
  NormDescription mixer_norm;
  MixerDescription mixer;
  NormDescription mlp_norm;
  MlpDescription mlp;
  /// index of the visual feature added at the image pads after the layer; -1 = none
  int64_t deepstack = -1;

  /// The mixer as attention or as delta rule; null if it is the other.
  const AttentionDescription* attention() const {
    return std::get_if<AttentionDescription>(&mixer);
  }
  const DeltaDescription* delta() const { return std::get_if<DeltaDescription>(&mixer); }
  /// The Linears of the mixer, in checkpoint order.
  std::vector<LinearDescription> mixer_linears() const;
};

/// The text tower. Heads and widths are the same in all layers of attention, which share one cache
/// of keys and values, and in all layers of the delta rule, which share one of states.
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

  int64_t num_layers() const { return std::ssize(layers); }
  int64_t num_attention_layers() const;
  int64_t num_delta_layers() const { return num_layers() - num_attention_layers(); }
  /// Index of each layer in the cache of its kind: its rank among the layers with the same mixer.
  std::vector<int64_t> cache_indices() const;
  /// The first layer of the delta rule; null if there is none. All have the same sizes.
  const DeltaDescription* delta() const;
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
  /// prefixes of tensors that no layer reads and every saved checkpoint keeps unchanged
  Strings carried;

  /// True for a tensor that is only carried from checkpoint to checkpoint.
  bool is_carried(const std::string& tensor) const;
  /// Small parameters that are computed in float32 for every dtype of the model: stored in float32
  /// they stay float32, also in saved checkpoints.
  std::set<std::string> float32_parameters() const;
  /// Every Linear that can have an adapter: blocks, mergers, layers, head.
  std::vector<LinearDescription> linears() const;
};

}  // namespace rematch
