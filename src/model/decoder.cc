#include "model/decoder.h"

#include "model/check_interrupt.h"
#include "model/nn/checkpoint.h"
#include "model/nn/more_norms.h"

namespace rematch {
namespace {

void fill_attention(DecoderLayer& layer, const AttentionDescription& attention,
                    LayerSource& source) {
  source.fill(layer.q, attention.q);
  source.fill(layer.k, attention.k);
  source.fill(layer.v, attention.v);
  source.fill(layer.o, attention.o);
  if (attention.q_norm) layer.q_norm = source.rms_norm(*attention.q_norm);
  if (attention.k_norm) layer.k_norm = source.rms_norm(*attention.k_norm);
}

void fill_layer(DecoderLayer& layer, const LayerDescription& description, LayerSource& source) {
  if (const AttentionDescription* attention = description.attention())
    fill_attention(layer, *attention, source);
  else
    layer.delta.fill(*description.delta(), source);
  source.fill(layer.gate, *description.mlp.gate);
  source.fill(layer.up, description.mlp.up);
  source.fill(layer.down, description.mlp.down);
  layer.mixer_norm = source.rms_norm(description.mixer_norm);
  layer.mlp_norm = source.rms_norm(description.mlp_norm);
}

at::Tensor normalise(const at::Tensor& x, const at::Tensor& weight, const NormDescription& norm) {
  return norm.kind == NormKind::kRmsOffset ? offset_rms_norm(x, weight, norm.eps)
                                           : rms_norm(x, weight, norm.eps);
}

// Rotates the first values of a head, as many as the table has.
at::Tensor rotate_part(const at::Tensor& x, const RopeTable& rope) {
  const int64_t width = rope.cos.size(-1), rest = x.size(-1) - width;
  if (rest == 0) return apply_rope(x, rope);
  return at::cat({apply_rope(x.narrow(-1, 0, width), rope), x.narrow(-1, width, rest)}, -1);
}

}  // namespace

Decoder::Decoder(const TextDescription& text, LayerSource& source)
    : text_(text), layers_(text.layers.size()), cache_indices_(text.cache_indices()) {
  for (size_t i = 0; i < layers_.size(); ++i) fill_layer(layers_[i], text.layers[i], source);
  final_norm_ = source.rms_norm(text.final_norm);
  rope_columns_ = rope_columns(text.rope.theta, text.rope.axis_of_pair, final_norm_.device());
}

at::Tensor Decoder::attend(int64_t layer_idx, const at::Tensor& x, const RopeTable& rope,
                           AttentionContext& context) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const AttentionDescription& description =
      *text_.layers[static_cast<size_t>(layer_idx)].attention();
  const auto heads = [&](const at::Tensor& projected, int64_t width) {
    return projected.unflatten(-1, {-1, width});
  };
  const auto rotate = [&](const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<NormDescription>& norm) {
    return rotate_part(norm ? normalise(x, weight, *norm) : x, rope);
  };
  const int64_t width = text_.head_dim;
  // With an output gate each head has its query, then its gate.
  const at::Tensor q_and_gate =
      heads(linear(x, layer.q), description.has_output_gate ? 2 * width : width);
  const at::Tensor q = rotate(q_and_gate.narrow(-1, 0, width), layer.q_norm, description.q_norm);
  const at::Tensor k = rotate(heads(linear(x, layer.k), width), layer.k_norm, description.k_norm);
  at::Tensor mixed = context.attend(cache_indices_[static_cast<size_t>(layer_idx)], q, k,
                                    heads(linear(x, layer.v), width));
  if (description.has_output_gate) mixed = mixed * q_and_gate.narrow(-1, width, width).sigmoid();
  return linear(mixed.flatten(-2), layer.o);
}

at::Tensor Decoder::mixer_block(int64_t layer_idx, const at::Tensor& hidden, const RopeTable& rope,
                                AttentionContext& context) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const LayerDescription& description = text_.layers[static_cast<size_t>(layer_idx)];
  const at::Tensor x = normalise(hidden, layer.mixer_norm, description.mixer_norm);
  if (const DeltaDescription* delta = description.delta())
    return layer.delta.forward(x, *delta, cache_indices_[static_cast<size_t>(layer_idx)], context);
  return attend(layer_idx, x, rope, context);
}

at::Tensor Decoder::layer_forward(int64_t layer_idx, const at::Tensor& hidden,
                                  const RopeTable& rope, AttentionContext& attention,
                                  bool is_read) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const at::Tensor mixed = hidden + mixer_block(layer_idx, hidden, rope, attention);
  const at::Tensor x =
      normalise(mixed, layer.mlp_norm, text_.layers[static_cast<size_t>(layer_idx)].mlp_norm);
  const at::Tensor inner = at::silu(linear(x, layer.gate)) * linear(x, layer.up);
  return mixed + (is_read ? linear(inner, layer.down) : linear_unread(inner, layer.down));
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
    const auto layer = [this, layer_idx, rope, again](bool is_read) -> Block {
      return [=, this](const std::vector<at::Tensor>& inputs) {
        return layer_forward(layer_idx, inputs[0], rope, *again, is_read);
      };
    };
    hidden =
        again == nullptr
            ? layer_forward(layer_idx, hidden, rope, attention)
            : run_checkpointed(TwoPassBlock{.first = layer(true), .again = layer(false)}, {hidden});
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
  return normalise(hidden, final_norm_, text_.final_norm);
}

}  // namespace rematch
