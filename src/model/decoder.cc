#include "model/decoder.h"

#include "model/check_interrupt.h"
#include "nn/checkpoint.h"

namespace rematch {
namespace {

void fill_layer(DecoderLayer& layer, const LayerDescription& description, LayerSource& source) {
  source.fill(layer.q, description.q);
  source.fill(layer.k, description.k);
  source.fill(layer.v, description.v);
  source.fill(layer.o, description.o);
  if (description.q_norm) layer.q_norm = source.rms_norm(*description.q_norm);
  if (description.k_norm) layer.k_norm = source.rms_norm(*description.k_norm);
  source.fill(layer.gate, *description.mlp.gate);
  source.fill(layer.up, description.mlp.up);
  source.fill(layer.down, description.mlp.down);
  layer.attention_norm = source.rms_norm(description.attention_norm);
  layer.mlp_norm = source.rms_norm(description.mlp_norm);
}

}  // namespace

Decoder::Decoder(const TextDescription& text, LayerSource& source)
    : text_(text), layers_(text.layers.size()) {
  for (size_t i = 0; i < layers_.size(); ++i) fill_layer(layers_[i], text.layers[i], source);
  final_norm_ = source.rms_norm(text.final_norm);
  rope_columns_ = rope_columns(text.rope.theta, text.rope.axis_of_pair, final_norm_.device());
}

at::Tensor Decoder::attention_block(int64_t layer_idx, const at::Tensor& hidden,
                                    const RopeTable& rope, AttentionContext& attention) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const LayerDescription& description = text_.layers[static_cast<size_t>(layer_idx)];
  const at::Tensor x = rms_norm(hidden, layer.attention_norm, description.attention_norm.eps);
  const auto heads = [&](const LinearWeights& projection) {
    return linear(x, projection).unflatten(-1, {-1, text_.head_dim});
  };
  const auto rotate = [&](const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<NormDescription>& norm) {
    return apply_rope(norm ? rms_norm(x, weight, norm->eps) : x, rope);
  };
  const at::Tensor q = rotate(heads(layer.q), layer.q_norm, description.q_norm);
  const at::Tensor k = rotate(heads(layer.k), layer.k_norm, description.k_norm);
  return linear(attention.attend(layer_idx, q, k, heads(layer.v)).flatten(-2), layer.o);
}

at::Tensor Decoder::layer_forward(int64_t layer_idx, const at::Tensor& hidden,
                                  const RopeTable& rope, AttentionContext& attention) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const at::Tensor attended = hidden + attention_block(layer_idx, hidden, rope, attention);
  const at::Tensor x =
      rms_norm(attended, layer.mlp_norm, text_.layers[static_cast<size_t>(layer_idx)].mlp_norm.eps);
  return attended + linear(at::silu(linear(x, layer.gate)) * linear(x, layer.up), layer.down);
}

at::Tensor Decoder::forward(const at::Tensor& embeds_TH, const at::Tensor& positions_3T,
                            AttentionContext& attention, const DeepstackInput& deepstack) const {
  const RopeTable rope = rope_table(positions_3T, rope_columns_, embeds_TH.scalar_type());
  const std::shared_ptr<AttentionContext> again =
      checkpointing_ ? attention.for_recomputing() : nullptr;
  at::Tensor hidden = embeds_TH;
  for (size_t i = 0; i < layers_.size(); ++i) {
    check_interrupt();
    const auto layer_idx = static_cast<int64_t>(i);
    hidden = again == nullptr
                 ? layer_forward(layer_idx, hidden, rope, attention)
                 : run_checkpointed(
                       [this, layer_idx, rope, again](const std::vector<at::Tensor>& inputs) {
                         return layer_forward(layer_idx, inputs[0], rope, *again);
                       },
                       {hidden});
    const int64_t feature_idx = text_.layers[i].deepstack;
    if (deepstack.visual_idx_M.defined() && feature_idx >= 0 &&
        feature_idx < static_cast<int64_t>(deepstack.features_MH.size())) {
      const at::Tensor feature =
          deepstack.features_MH[static_cast<size_t>(feature_idx)].to(hidden.scalar_type());
      hidden = hidden.reshape({-1, text_.hidden_size})
                   .index_add(0, deepstack.visual_idx_M, feature)
                   .view(hidden.sizes());
    }
  }
  return rms_norm(hidden, final_norm_, text_.final_norm.eps);
}

}  // namespace rematch
