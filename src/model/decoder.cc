#include "model/decoder.h"

#include "nn/checkpoint.h"

namespace rematch {
namespace {

DecoderLayer take_layer(const TensorSource& source, const LayerDescription& description) {
  DecoderLayer layer;
  layer.q = take_linear(source, description.q);
  layer.k = take_linear(source, description.k);
  layer.v = take_linear(source, description.v);
  layer.o = take_linear(source, description.o);
  if (description.q_norm) layer.q_norm = take_rms_norm(source, *description.q_norm);
  if (description.k_norm) layer.k_norm = take_rms_norm(source, *description.k_norm);
  layer.gate = take_linear(source, *description.mlp.gate);
  layer.up = take_linear(source, description.mlp.up);
  layer.down = take_linear(source, description.mlp.down);
  layer.attention_norm = take_rms_norm(source, description.attention_norm);
  layer.mlp_norm = take_rms_norm(source, description.mlp_norm);
  return layer;
}

}  // namespace

Decoder::Decoder(const TextDescription& text, const TensorSource& source) : text_(text) {
  for (const LayerDescription& layer : text.layers) layers_.push_back(take_layer(source, layer));
  final_norm_ = take_rms_norm(source, text.final_norm);
  rope_columns_ = rope_columns(text.rope.theta, text.rope.axis_of_pair, final_norm_.device());
}

void Decoder::visit_linears(const LinearVisitor& visit) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerDescription& description = text_.layers[i];
    DecoderLayer& layer = layers_[i];
    visit(description.q.module, layer.q);
    visit(description.k.module, layer.k);
    visit(description.v.module, layer.v);
    visit(description.o.module, layer.o);
    visit(description.mlp.gate->module, layer.gate);
    visit(description.mlp.up.module, layer.up);
    visit(description.mlp.down.module, layer.down);
  }
}

at::Tensor Decoder::attention_block(int64_t layer_idx, const at::Tensor& hidden, const RopeTable& rope, AttentionContext& attention) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const LayerDescription& description = text_.layers[static_cast<size_t>(layer_idx)];
  const at::Tensor x = rms_norm(hidden, layer.attention_norm, description.attention_norm.eps);
  const auto heads = [&](const LinearWeights& projection) { return linear(x, projection).unflatten(-1, {-1, text_.head_dim}); };
  const auto normed = [](const at::Tensor& x, const at::Tensor& weight, const std::optional<NormDescription>& norm) {
    return norm ? rms_norm(x, weight, norm->eps) : x;
  };
  const at::Tensor q = apply_rope(normed(heads(layer.q), layer.q_norm, description.q_norm), rope);
  const at::Tensor k = apply_rope(normed(heads(layer.k), layer.k_norm, description.k_norm), rope);
  return linear(attention.attend(layer_idx, q, k, heads(layer.v)).flatten(-2), layer.o);
}

at::Tensor Decoder::layer_forward(int64_t layer_idx, const at::Tensor& hidden, const RopeTable& rope, AttentionContext& attention) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const at::Tensor attended = hidden + attention_block(layer_idx, hidden, rope, attention);
  const at::Tensor x = rms_norm(attended, layer.mlp_norm, text_.layers[static_cast<size_t>(layer_idx)].mlp_norm.eps);
  return attended + linear(at::silu(linear(x, layer.gate)) * linear(x, layer.up), layer.down);
}

at::Tensor Decoder::forward(const at::Tensor& embeds_TH, const at::Tensor& positions_3T, AttentionContext& attention,
                            const DeepstackInput& deepstack) const {
  const RopeTable rope = rope_table(positions_3T, rope_columns_, embeds_TH.scalar_type());
  const std::shared_ptr<AttentionContext> again = checkpointing_ ? attention.for_recomputing() : nullptr;
  at::Tensor hidden = embeds_TH;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto layer_idx = static_cast<int64_t>(i);
    hidden = again == nullptr
                 ? layer_forward(layer_idx, hidden, rope, attention)
                 : checkpointed([this, layer_idx, rope, again](
                                    const std::vector<at::Tensor>& inputs) { return layer_forward(layer_idx, inputs[0], rope, *again); },
                                {hidden});
    const int64_t feature_idx = text_.layers[i].deepstack;
    if (deepstack.visual_idx_M.defined() && feature_idx >= 0 && feature_idx < static_cast<int64_t>(deepstack.features_MH.size())) {
      const at::Tensor feature = deepstack.features_MH[static_cast<size_t>(feature_idx)].to(hidden.scalar_type());
      hidden = hidden.reshape({-1, text_.hidden_size}).index_add(0, deepstack.visual_idx_M, feature).view(hidden.sizes());
    }
  }
  return rms_norm(hidden, final_norm_, text_.final_norm.eps);
}

}  // namespace rematch
