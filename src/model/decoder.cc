#include "model/decoder.h"

#include <utility>

#include "model/check_interrupt.h"
#include "model/nn/block_weights.h"
#include "model/nn/checkpoint.h"
#include "model/nn/more_norms.h"
#include "model/nn/swiglu.h"

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

// Rotates the first values of each head, as many as the table has.
std::pair<at::Tensor, at::Tensor> rotate_part(const at::Tensor& q, const at::Tensor& k,
                                              const RopeTable& rope) {
  const int64_t width = rope.cos.size(-1), rest = q.size(-1) - width;
  if (rest == 0) return apply_rope(q, k, rope);
  const auto [rotated_q, rotated_k] =
      apply_rope(q.narrow(-1, 0, width), k.narrow(-1, 0, width), rope);
  return {at::cat({rotated_q, q.narrow(-1, width, rest)}, -1),
          at::cat({rotated_k, k.narrow(-1, width, rest)}, -1)};
}

}  // namespace

// A layer in four steps, each of which ends in products: project (q, k, v), add_mixer (o), widen
// (gate, up) and add_mlp (down). `results` are those of these products.
struct Decoder::Layer {
  const TextDescription& text;
  const LayerDescription& description;
  const DecoderLayer& weights;
  int64_t cache_idx;
  RopeTable rope;

  std::vector<at::Tensor> project(const at::Tensor& hidden, Results results) const;
  at::Tensor attend(const std::vector<at::Tensor>& projected, AttentionContext& context,
                    Results results) const;
  at::Tensor add_mixer(const at::Tensor& hidden, const std::vector<at::Tensor>& projected,
                       AttentionContext& context, Results results) const;
  /// @return  gate and up
  std::vector<at::Tensor> widen(const at::Tensor& mixed, Results results) const;
  /// @param wide  of widen()
  at::Tensor add_mlp(const at::Tensor& mixed, std::vector<at::Tensor> wide, Results results) const;
  at::Tensor run(const at::Tensor& hidden, AttentionContext& context, Results results) const;
};

std::vector<at::Tensor> Decoder::Layer::project(const at::Tensor& hidden, Results results) const {
  const at::Tensor x = normalise(hidden, weights.mixer_norm, description.mixer_norm);
  if (description.delta() != nullptr) return weights.delta.project(x, results);
  std::vector<at::Tensor> projected;
  for (const LinearWeights* layer : {&weights.q, &weights.k, &weights.v})
    projected.push_back(linear(x, *layer, results));
  return projected;
}

at::Tensor Decoder::Layer::attend(const std::vector<at::Tensor>& projected,
                                  AttentionContext& context, Results results) const {
  const AttentionDescription& attention = *description.attention();
  const auto heads = [](const at::Tensor& flat, int64_t width) {
    return flat.unflatten(-1, {-1, width});
  };
  const int64_t width = text.head_dim;
  // With an output gate each head has its query, then its gate.
  const at::Tensor q_and_gate = heads(projected[0], attention.has_output_gate ? 2 * width : width);
  at::Tensor queries = attention.has_output_gate ? q_and_gate.narrow(-1, 0, width) : q_and_gate,
             keys = heads(projected[1], width);
  if (attention.q_norm) queries = normalise(queries, weights.q_norm, *attention.q_norm);
  if (attention.k_norm) keys = normalise(keys, weights.k_norm, *attention.k_norm);
  const auto [q, k] = rotate_part(queries, keys, rope);
  at::Tensor mixed = context.attend(cache_idx, q, k, heads(projected[2], width));
  if (attention.has_output_gate) mixed = mixed * q_and_gate.narrow(-1, width, width).sigmoid();
  return linear(mixed.flatten(-2), weights.o, results);
}

at::Tensor Decoder::Layer::add_mixer(const at::Tensor& hidden,
                                     const std::vector<at::Tensor>& projected,
                                     AttentionContext& context, Results results) const {
  const DeltaDescription* delta = description.delta();
  return hidden + (delta != nullptr
                       ? weights.delta.mix(projected, *delta, cache_idx, context, results)
                       : attend(projected, context, results));
}

std::vector<at::Tensor> Decoder::Layer::widen(const at::Tensor& mixed, Results results) const {
  const at::Tensor x = normalise(mixed, weights.mlp_norm, description.mlp_norm);
  // With adapters the order decides the bits of x's gradient.
  const at::Tensor up = linear(x, weights.up, results), gate = linear(x, weights.gate, results);
  return {gate, up};
}

at::Tensor Decoder::Layer::add_mlp(const at::Tensor& mixed, std::vector<at::Tensor> wide,
                                   Results results) const {
  const at::Tensor inner = swiglu(wide[0], wide[1]);
  wide.clear();  // frees it, unless gradients read it
  return mixed + linear(inner, weights.down, results);
}

at::Tensor Decoder::Layer::run(const at::Tensor& hidden, AttentionContext& context,
                               Results results) const {
  const at::Tensor mixed =
      add_mixer(hidden, project(hidden, Results::kRead), context, Results::kRead);
  return add_mlp(mixed, widen(mixed, Results::kRead), results);
}

Decoder::Decoder(const TextDescription& text, LayerSource& source)
    : text_(text), layers_(text.layers.size()), cache_indices_(text.cache_indices()) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    needs_.push_back(source.fill_block([&] { fill_layer(layers_[i], text.layers[i], source); }));
  }
  final_norm_ = source.rms_norm(text.final_norm);
  rope_columns_ = rope_columns(text.rope.theta, text.rope.axis_of_pair, final_norm_.device());
}

at::Tensor Decoder::run_checkpointed_layer(const Layer& layer, const at::Tensor& hidden,
                                           const std::shared_ptr<AttentionContext>& context) const {
  using Tensors = std::vector<at::Tensor>;
  if (checkpointing_ == Checkpointing::kOn) {
    const TwoPassBlock whole = [=](const Tensors& inputs, Results results) -> Tensors {
      return {layer.run(inputs[0], *context, results)};
    };
    return run_checkpointed(whole, {hidden}).front();
  }
  const TwoPassBlock project = [=](const Tensors& inputs, Results results) {
    return layer.project(inputs[0], results);
  };
  // The inputs: what was projected, then the hidden states.
  const TwoPassBlock add_mixer = [=](const Tensors& inputs, Results results) -> Tensors {
    return {layer.add_mixer(inputs.back(), inputs, *context, results)};
  };
  const TwoPassBlock widen = [=](const Tensors& inputs, Results results) {
    return layer.widen(inputs[0], results);
  };
  const TwoPassBlock add_mlp = [=](const Tensors& inputs, Results results) -> Tensors {
    return {layer.add_mlp(inputs[0], {inputs[1], inputs[2]}, results)};
  };
  Tensors projected = run_checkpointed(project, {hidden});
  projected.push_back(hidden);
  const at::Tensor mixed = run_checkpointed(add_mixer, projected).front();
  const Tensors wide = run_checkpointed(widen, {mixed});
  return run_checkpointed(add_mlp, {mixed, wide[0], wide[1]}).front();
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
    hidden = run_block(needs_[i], [&] {
      return again == nullptr ? layer.run(hidden, attention, Results::kRead)
                              : run_checkpointed_layer(layer, hidden, again);
    });
    const int64_t feature_idx = text_.layers[i].deepstack;
    if (deepstack.visual_idx_M.defined() && feature_idx >= 0 &&
        feature_idx < std::ssize(deepstack.features_MH)) {
      const at::Tensor feature = deepstack.features_MH[feature_idx].to(hidden.scalar_type());
      hidden = hidden.reshape({-1, text_.hidden_size})
                   .index_add(0, deepstack.visual_idx_M, feature)
                   .view(hidden.sizes());
    }
  }
  return normalise(hidden, final_norm_, text_.final_norm);
}

}  // namespace rematch
