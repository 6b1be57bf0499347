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

at::Tensor product(const at::Tensor& x, const LinearWeights& layer, bool is_read) {
  return is_read ? linear(x, layer) : linear_unread(x, layer);
}

}  // namespace

// Four steps: two pairs of products, then what reads them. `is_read` = false: a step's products end
// a recomputed pass (linear_unread()).
struct Decoder::Layer {
  const TextDescription& text;
  const LayerDescription& description;
  const DecoderLayer& weights;
  int64_t cache_idx;
  RopeTable rope;

  std::vector<at::Tensor> project(const at::Tensor& hidden, bool is_read) const;
  at::Tensor attend(const std::vector<at::Tensor>& projected, AttentionContext& context,
                    bool is_read) const;
  at::Tensor add_mixer(const at::Tensor& hidden, const std::vector<at::Tensor>& projected,
                       AttentionContext& context, bool is_read) const;
  /// @return  gate and up
  std::vector<at::Tensor> widen(const at::Tensor& mixed, bool is_read) const;
  at::Tensor add_mlp(const at::Tensor& mixed, const at::Tensor& gate, const at::Tensor& up,
                     bool is_read) const;
  at::Tensor run(const at::Tensor& hidden, AttentionContext& context, bool is_read) const;
};

std::vector<at::Tensor> Decoder::Layer::project(const at::Tensor& hidden, bool is_read) const {
  const at::Tensor x = normalise(hidden, weights.mixer_norm, description.mixer_norm);
  if (description.delta() != nullptr) return weights.delta.project(x, is_read);
  std::vector<at::Tensor> projected;
  for (const LinearWeights* layer : {&weights.q, &weights.k, &weights.v})
    projected.push_back(product(x, *layer, is_read));
  return projected;
}

at::Tensor Decoder::Layer::attend(const std::vector<at::Tensor>& projected,
                                  AttentionContext& context, bool is_read) const {
  const AttentionDescription& attention = *description.attention();
  const auto heads = [](const at::Tensor& values, int64_t width) {
    return values.unflatten(-1, {-1, width});
  };
  const auto rotate = [&](const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<NormDescription>& norm) {
    return rotate_part(norm ? normalise(x, weight, *norm) : x, rope);
  };
  const int64_t width = text.head_dim;
  // With an output gate each head has its query, then its gate.
  const at::Tensor q_and_gate = heads(projected[0], attention.has_output_gate ? 2 * width : width);
  const at::Tensor q = rotate(q_and_gate.narrow(-1, 0, width), weights.q_norm, attention.q_norm);
  const at::Tensor k = rotate(heads(projected[1], width), weights.k_norm, attention.k_norm);
  at::Tensor mixed = context.attend(cache_idx, q, k, heads(projected[2], width));
  if (attention.has_output_gate) mixed = mixed * q_and_gate.narrow(-1, width, width).sigmoid();
  return product(mixed.flatten(-2), weights.o, is_read);
}

at::Tensor Decoder::Layer::add_mixer(const at::Tensor& hidden,
                                     const std::vector<at::Tensor>& projected,
                                     AttentionContext& context, bool is_read) const {
  const DeltaDescription* delta = description.delta();
  return hidden + (delta != nullptr
                       ? weights.delta.mix(projected, *delta, cache_idx, context, is_read)
                       : attend(projected, context, is_read));
}

std::vector<at::Tensor> Decoder::Layer::widen(const at::Tensor& mixed, bool is_read) const {
  const at::Tensor x = normalise(mixed, weights.mlp_norm, description.mlp_norm);
  // The order decides the bits of x's gradient.
  const at::Tensor up = product(x, weights.up, is_read), gate = product(x, weights.gate, is_read);
  return {gate, up};
}

at::Tensor Decoder::Layer::add_mlp(const at::Tensor& mixed, const at::Tensor& gate,
                                   const at::Tensor& up, bool is_read) const {
  return mixed + product(at::silu(gate) * up, weights.down, is_read);
}

at::Tensor Decoder::Layer::run(const at::Tensor& hidden, AttentionContext& context,
                               bool is_read) const {
  const at::Tensor mixed =
      add_mixer(hidden, project(hidden, /*is_read=*/true), context, /*is_read=*/true);
  const std::vector<at::Tensor> wide = widen(mixed, /*is_read=*/true);
  return add_mlp(mixed, wide[0], wide[1], is_read);
}

Decoder::Decoder(const TextDescription& text, LayerSource& source)
    : text_(text), layers_(text.layers.size()), cache_indices_(text.cache_indices()) {
  for (size_t i = 0; i < layers_.size(); ++i) fill_layer(layers_[i], text.layers[i], source);
  final_norm_ = source.rms_norm(text.final_norm);
  rope_columns_ = rope_columns(text.rope.theta, text.rope.axis_of_pair, final_norm_.device());
}

at::Tensor Decoder::run_again(const Layer& layer, const at::Tensor& hidden,
                              const std::shared_ptr<AttentionContext>& context) const {
  using Tensors = std::vector<at::Tensor>;
  if (checkpointing_ == Checkpointing::kOn) {
    const TwoPassBlock whole = [=](const Tensors& inputs, bool is_read) -> Tensors {
      return {layer.run(inputs[0], *context, is_read)};
    };
    return run_checkpointed(whole, {hidden}).front();
  }
  const TwoPassBlock project = [=](const Tensors& inputs, bool is_read) {
    return layer.project(inputs[0], is_read);
  };
  // The inputs of mixing: what was projected, then the hidden states.
  const TwoPassBlock mix = [=](const Tensors& inputs, bool is_read) -> Tensors {
    return {layer.add_mixer(inputs.back(), inputs, *context, is_read)};
  };
  const TwoPassBlock widen = [=](const Tensors& inputs, bool is_read) {
    return layer.widen(inputs[0], is_read);
  };
  const TwoPassBlock narrow = [=](const Tensors& inputs, bool is_read) -> Tensors {
    return {layer.add_mlp(inputs[0], inputs[1], inputs[2], is_read)};
  };
  Tensors projected = run_checkpointed(project, {hidden});
  projected.push_back(hidden);
  const at::Tensor mixed = run_checkpointed(mix, projected).front();
  const Tensors wide = run_checkpointed(widen, {mixed});
  return run_checkpointed(narrow, {mixed, wide[0], wide[1]}).front();
}

at::Tensor Decoder::forward(const at::Tensor& embeds_TH, const at::Tensor& positions_3T,
                            AttentionContext& attention, const DeepstackInput& deepstack) const {
  const RopeTable rope = rope_table(positions_3T, rope_columns_, embeds_TH.scalar_type());
  const std::shared_ptr<AttentionContext> again =
      checkpointing_ == Checkpointing::kOff ? nullptr : attention.for_recomputing();
  at::Tensor hidden = embeds_TH;
  for (size_t i = 0; i < layers_.size(); ++i) {
    check_interrupt();
    const Layer layer{.text = text_,
                      .description = text_.layers[i],
                      .weights = layers_[i],
                      .cache_idx = cache_indices_[i],
                      .rope = rope};
    hidden = again == nullptr ? layer.run(hidden, attention, /*is_read=*/true)
                              : run_again(layer, hidden, again);
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
