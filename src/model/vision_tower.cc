#include "model/vision_tower.h"

#include "model/check_interrupt.h"
#include "model/nn/affine.h"
#include "model/nn/attention.h"
#include "model/nn/block_weights.h"
#include "model/nn/checkpoint.h"
#include "model/nn/device_kernels.h"
#include "model/nn/swiglu.h"
#include "model/vision_rows.h"

namespace rematch {
namespace {

void fill_merger(PatchMerger& merger, const MergerDescription& description, LayerSource& source) {
  merger.norm = source.norm(description.norm);
  source.fill(merger.fc1, description.fc1);
  source.fill(merger.fc2, description.fc2);
  merger.norm_after_shuffle = description.norm_after_shuffle;
}

void fill_block(VisionBlock& block, const VisionBlockDescription& description,
                LayerSource& source) {
  block.norm1 = source.norm(description.norm1);
  block.norm2 = source.norm(description.norm2);
  source.fill(block.qkv, description.qkv);
  source.fill(block.proj, description.proj);
  if (description.mlp.gate) source.fill(block.gate, *description.mlp.gate);
  source.fill(block.fc1, description.mlp.up);
  source.fill(block.fc2, description.mlp.down);
}

at::Tensor apply_norm(const at::Tensor& x, const LayerNormWeights& norm) {
  return norm.bias.defined() ? layer_norm(x, norm) : rms_norm(x, norm.weight, norm.eps);
}

at::Tensor feed_forward(const at::Tensor& x, const VisionBlock& block) {
  const bool is_gated = block.gate.weight.defined();
  const at::Tensor inner = is_gated ? swiglu(linear(x, block.gate), linear(x, block.fc1))
                                    : gelu_tanh(linear(x, block.fc1));
  return linear(inner, block.fc2);
}

}  // namespace

at::Tensor PatchMerger::forward(const at::Tensor& hidden_ND) const {
  // Rows are in block order, so this view is the 2×2 merge.
  const auto shuffle = [&](const at::Tensor& rows) {
    return rows.reshape({-1, fc1.weight.size(1)});
  };
  const at::Tensor x = norm_after_shuffle ? apply_norm(shuffle(hidden_ND), norm)
                                          : shuffle(apply_norm(hidden_ND, norm));
  return linear(gelu_erf(linear(x, fc1)), fc2);
}

VisionTower::VisionTower(const VisionDescription& vision, LayerSource& source)
    : vision_(vision),
      blocks_(vision.blocks.size()),
      deepstack_mergers_(vision.deepstack_mergers.size()) {
  // Not by fill(), because a convolution cannot have an adapter.
  const LinearDescription& patch_embed = vision.patch_embed;
  patch_embed_.weight =
      source.take(patch_embed.module + ".weight",
                  {vision.hidden_size, vision.in_channels, vision.temporal_patch_size,
                   vision.patch_size, vision.patch_size});
  if (patch_embed.has_bias)
    patch_embed_.bias = source.take(patch_embed.module + ".bias", {vision.hidden_size});
  if (!vision.position_table.empty()) {
    pos_embed_ = source.take(vision.position_table + ".weight",
                             {vision.num_position_embeddings, vision.hidden_size});
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    needs_.push_back(source.fill_block([&] { fill_block(blocks_[i], vision.blocks[i], source); }));
  }
  fill_merger(merger_, vision.merger, source);
  for (size_t i = 0; i < deepstack_mergers_.size(); ++i)
    fill_merger(deepstack_mergers_[i], vision.deepstack_mergers[i], source);
}

at::Tensor VisionTower::patch_embed_ND(const at::Tensor& pixel_values_NC) const {
  // Kernel = stride, so there is one output per row; but a matmul would round differently
  // (MODEL 3.1), so the CPU keeps the convolution.
  const at::Tensor& weight = patch_embed_.weight;
  if (uses_device_kernels(weight.device())) {
    // cuDNN takes up to 50,000 times as long for this convolution as a matmul.
    return affine(pixel_values_NC.to(weight.scalar_type()), weight.flatten(1), patch_embed_.bias);
  }
  const at::Tensor patches =
      pixel_values_NC.to(weight.options().requires_grad(false))
          .reshape({-1, weight.size(1), weight.size(2), weight.size(3), weight.size(4)});
  return at::conv3d(patches, weight, patch_embed_.bias, weight.sizes().slice(2))
      .reshape({-1, vision_.hidden_size});
}

at::Tensor VisionTower::block_forward(const VisionBlock& block, const at::Tensor& hidden_ND,
                                      const RopeTable& rope, SegmentAttention& attention) const {
  const int64_t num_heads = vision_.num_heads;
  const at::Tensor qkv = linear(apply_norm(hidden_ND, block.norm1), block.qkv)
                             .reshape({hidden_ND.size(0), 3, num_heads, -1});
  const at::ScalarType dtype = qkv.scalar_type();
  const auto attend = [&](const at::Tensor& q, const at::Tensor& k) {
    const at::Tensor attended = attention.attend(q, k, qkv.select(1, 2)).flatten(1);
    const at::Tensor hidden = hidden_ND + linear(attended, block.proj);
    return hidden + feed_forward(apply_norm(hidden, block.norm2), block);
  };
  if (uses_device_kernels(qkv.device())) {  // queries and keys together: half the operators
    const at::Tensor both = apply_rope(qkv.narrow(1, 0, 2).flatten(1, 2), rope).to(dtype);
    return attend(both.narrow(1, 0, num_heads), both.narrow(1, num_heads, num_heads));
  }
  const at::Tensor q = apply_rope(qkv.select(1, 0).to(at::kFloat), rope).to(dtype);
  const at::Tensor k = apply_rope(qkv.select(1, 1).to(at::kFloat), rope).to(dtype);
  return attend(q, k);
}

VisionFeatures VisionTower::forward(const at::Tensor& pixel_values_NC,
                                    const std::vector<GridThw>& grid_thw) const {
  const VisionRows rows =
      make_vision_rows(grid_thw, vision_, pos_embed_, patch_embed_.weight.device());
  // Only attention mixes rows, so it is enough to reorder them once before and once after the
  // blocks.
  at::Tensor hidden = patch_embed_ND(
      rows.order_N.defined() ? pixel_values_NC.index_select(0, rows.order_N) : pixel_values_NC);
  if (rows.position_ND.defined()) hidden = hidden + rows.position_ND;
  const auto merge = [&](const PatchMerger& merger) {
    const at::Tensor tokens = merger.forward(hidden);
    return rows.token_M.defined() ? tokens.index_select(0, rows.token_M) : tokens;
  };
  const auto in_frames = std::make_shared<SegmentAttention>(rows.frame_lens, /*is_causal=*/false);
  const auto in_windows = std::make_shared<SegmentAttention>(rows.window_lens, /*is_causal=*/false);
  VisionFeatures output;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    check_interrupt();
    const std::shared_ptr<SegmentAttention>& attention =
        vision_.blocks[i].window > 0 ? in_windows : in_frames;
    hidden = run_block(needs_[i], [&] {
      if (!checkpointing_) return block_forward(blocks_[i], hidden, rows.rope, *attention);
      return run_checkpointed(
          [this, i, rope = rows.rope, attention](const std::vector<at::Tensor>& inputs) {
            return block_forward(blocks_[i], inputs[0], rope, *attention);
          },
          {hidden});
    });
    const int64_t merger = vision_.blocks[i].deepstack_merger;
    if (merger >= 0) output.deepstack_MH.push_back(merge(deepstack_mergers_[merger]));
  }
  output.embeds_MH = merge(merger_);
  return output;
}

}  // namespace rematch
