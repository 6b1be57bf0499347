#include "model/vision_tower.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/vision_rows.h"
#include "nn/attention.h"
#include "nn/checkpoint.h"

namespace rematch {
namespace {

constexpr const char* kPrefix = "model.visual.";

LinearWeights take_linear(const TensorSource& source, const std::string& name, int64_t out, int64_t in) {
  LinearWeights layer;
  layer.weight = source(name + ".weight", {out, in});
  layer.bias = source(name + ".bias", {out});
  return layer;
}

LayerNormWeights take_norm(const TensorSource& source, const std::string& name, int64_t width) {
  LayerNormWeights layer;
  layer.weight = source(name + ".weight", {width});
  layer.bias = source(name + ".bias", {width});
  return layer;
}

PatchMerger take_merger(const TensorSource& source, const std::string& name, const VisionConfig& config, bool norm_after_shuffle) {
  const int64_t merged = config.hidden_size * config.spatial_merge_size * config.spatial_merge_size;
  PatchMerger merger;
  merger.norm_after_shuffle = norm_after_shuffle;
  merger.norm = take_norm(source, name + ".norm", norm_after_shuffle ? merged : config.hidden_size);
  merger.fc1 = take_linear(source, name + ".linear_fc1", merged, merged);
  merger.fc2 = take_linear(source, name + ".linear_fc2", config.out_hidden_size, merged);
  return merger;
}

VisionBlock take_block(const TensorSource& source, const std::string& name, const VisionConfig& config) {
  const int64_t width = config.hidden_size;
  VisionBlock block;
  block.norm1 = take_norm(source, name + ".norm1", width);
  block.norm2 = take_norm(source, name + ".norm2", width);
  block.qkv = take_linear(source, name + ".attn.qkv", 3 * width, width);
  block.proj = take_linear(source, name + ".attn.proj", width, width);
  block.fc1 = take_linear(source, name + ".mlp.linear_fc1", config.intermediate_size, width);
  block.fc2 = take_linear(source, name + ".mlp.linear_fc2", width, config.intermediate_size);
  return block;
}

}  // namespace

at::Tensor PatchMerger::forward(const at::Tensor& hidden_ND) const {
  // Rows are in block order, so this view is the 2×2 merge.
  const auto shuffled = [&](const at::Tensor& rows) { return rows.reshape({-1, fc1.weight.size(1)}); };
  const at::Tensor x = norm_after_shuffle ? layer_norm(shuffled(hidden_ND), norm) : shuffled(layer_norm(hidden_ND, norm));
  return linear(gelu_erf(linear(x, fc1)), fc2);
}

VisionTower::VisionTower(const VisionConfig& config, const TensorSource& source) : config_(config) {
  const std::string prefix = kPrefix;
  patch_embed_.weight = source(prefix + "patch_embed.proj.weight",
                               {config.hidden_size, config.in_channels, config.temporal_patch_size, config.patch_size, config.patch_size});
  patch_embed_.bias = source(prefix + "patch_embed.proj.bias", {config.hidden_size});
  pos_embed_ = source(prefix + "pos_embed.weight", {config.num_position_embeddings, config.hidden_size});
  for (int64_t i = 0; i < config.depth; ++i) blocks_.push_back(take_block(source, fmt::format("{}blocks.{}", prefix, i), config));
  merger_ = take_merger(source, prefix + "merger", config, false);
  for (size_t i = 0; i < config.deepstack_visual_indexes.size(); ++i) {
    deepstack_mergers_.push_back(take_merger(source, fmt::format("{}deepstack_merger_list.{}", prefix, i), config, true));
  }
}

void VisionTower::visit_linears(const LinearVisitor& visit) {
  const std::string prefix = kPrefix;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const std::string block = fmt::format("{}blocks.{}.", prefix, i);
    visit(block + "attn.qkv", blocks_[i].qkv);
    visit(block + "attn.proj", blocks_[i].proj);
    visit(block + "mlp.linear_fc1", blocks_[i].fc1);
    visit(block + "mlp.linear_fc2", blocks_[i].fc2);
  }
  const auto visit_merger = [&](const std::string& name, PatchMerger& merger) {
    visit(name + ".linear_fc1", merger.fc1);
    visit(name + ".linear_fc2", merger.fc2);
  };
  visit_merger(prefix + "merger", merger_);
  for (size_t i = 0; i < deepstack_mergers_.size(); ++i) {
    visit_merger(fmt::format("{}deepstack_merger_list.{}", prefix, i), deepstack_mergers_[i]);
  }
}

at::Tensor VisionTower::patch_embed_ND(const at::Tensor& pixel_values_NC) const {
  // The convolution has kernel = stride, one output per row. conv3d itself, because a matmul rounds differently (MODEL 3.1).
  const at::Tensor& weight = patch_embed_.weight;
  const at::Tensor patches = pixel_values_NC.to(weight.options().requires_grad(false))
                                 .reshape({-1, weight.size(1), weight.size(2), weight.size(3), weight.size(4)});
  return at::conv3d(patches, weight, patch_embed_.bias, weight.sizes().slice(2)).reshape({-1, config_.hidden_size});
}

at::Tensor VisionTower::block_forward(const VisionBlock& block, const at::Tensor& hidden_ND, const RopeTable& rope,
                                      const std::vector<int64_t>& frame_lens) const {
  const int64_t num_heads = config_.num_heads;
  const at::Tensor qkv = linear(layer_norm(hidden_ND, block.norm1), block.qkv).reshape({hidden_ND.size(0), 3, num_heads, -1});
  const at::ScalarType dtype = qkv.scalar_type();
  const at::Tensor q = apply_rope(qkv.select(1, 0).to(at::kFloat), rope).to(dtype);
  const at::Tensor k = apply_rope(qkv.select(1, 1).to(at::kFloat), rope).to(dtype);
  const at::Tensor attended = block_full_attention(q, k, qkv.select(1, 2), frame_lens).flatten(1);
  const at::Tensor hidden = hidden_ND + linear(attended, block.proj);
  return hidden + linear(gelu_tanh(linear(layer_norm(hidden, block.norm2), block.fc1)), block.fc2);
}

VisionTowerOutput VisionTower::forward(const at::Tensor& pixel_values_NC, const std::vector<GridThw>& grid_thw) const {
  const VisionRows rows = make_vision_rows(grid_thw, config_, pos_embed_);
  at::Tensor hidden = patch_embed_ND(pixel_values_NC) + rows.position_ND;
  VisionTowerOutput output;
  const std::vector<int64_t>& taps = config_.deepstack_visual_indexes;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    hidden = !checkpointing_ ? block_forward(blocks_[i], hidden, rows.rope, rows.frame_lens)
                             : checkpointed(
                                   [this, i, rope = rows.rope, frame_lens = rows.frame_lens](const std::vector<at::Tensor>& inputs) {
                                     return block_forward(blocks_[i], inputs[0], rope, frame_lens);
                                   },
                                   {hidden});
    // Features come in block order; which merger makes them is the block's place in the list.
    const auto tap = std::find(taps.begin(), taps.end(), static_cast<int64_t>(i));
    if (tap != taps.end()) output.deepstack_MH.push_back(deepstack_mergers_[static_cast<size_t>(tap - taps.begin())].forward(hidden));
  }
  output.embeds_MH = merger_.forward(hidden);
  return output;
}

}  // namespace rematch
