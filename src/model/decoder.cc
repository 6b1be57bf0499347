#include "model/decoder.h"

#include <fmt/core.h>

#include "nn/checkpoint.h"

namespace rematch {
namespace {

DecoderLayer take_layer(const TensorSource& source, const std::string& prefix, const TextConfig& config) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t q_width = config.num_attention_heads * config.head_dim, kv_width = config.num_key_value_heads * config.head_dim;
  const auto take = [&](const char* name, const std::vector<int64_t>& shape) { return source(prefix + name + ".weight", shape); };
  DecoderLayer layer;
  layer.q.weight = take("self_attn.q_proj", {q_width, hidden});
  layer.k.weight = take("self_attn.k_proj", {kv_width, hidden});
  layer.v.weight = take("self_attn.v_proj", {kv_width, hidden});
  layer.o.weight = take("self_attn.o_proj", {hidden, q_width});
  layer.q_norm = take("self_attn.q_norm", {config.head_dim});
  layer.k_norm = take("self_attn.k_norm", {config.head_dim});
  layer.gate.weight = take("mlp.gate_proj", {inner, hidden});
  layer.up.weight = take("mlp.up_proj", {inner, hidden});
  layer.down.weight = take("mlp.down_proj", {hidden, inner});
  layer.input_norm = take("input_layernorm", {hidden});
  layer.post_attention_norm = take("post_attention_layernorm", {hidden});
  return layer;
}

}  // namespace

Decoder::Decoder(const TextConfig& config, const TensorSource& source) : config_(config) {
  const std::string prefix = "model.language_model.";
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(take_layer(source, fmt::format("{}layers.{}.", prefix, i), config));
  }
  final_norm_ = source(prefix + "norm.weight", {config.hidden_size});
  rope_columns_ =
      mrope_columns({.theta = config.rope_theta, .head_dim = config.head_dim, .section = config.mrope_section}, final_norm_.device());
}

void Decoder::visit_linears(const LinearVisitor& visit) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = fmt::format("model.language_model.layers.{}.", i);
    DecoderLayer& layer = layers_[i];
    visit(prefix + "self_attn.q_proj", layer.q);
    visit(prefix + "self_attn.k_proj", layer.k);
    visit(prefix + "self_attn.v_proj", layer.v);
    visit(prefix + "self_attn.o_proj", layer.o);
    visit(prefix + "mlp.gate_proj", layer.gate);
    visit(prefix + "mlp.up_proj", layer.up);
    visit(prefix + "mlp.down_proj", layer.down);
  }
}

at::Tensor Decoder::attention_block(int64_t layer_idx, const at::Tensor& hidden, const RopeTable& rope, AttentionContext& attention) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const double eps = config_.rms_norm_eps;
  const at::Tensor x = rms_norm(hidden, layer.input_norm, eps);
  const auto heads = [&](const LinearWeights& projection) { return linear(x, projection).unflatten(-1, {-1, config_.head_dim}); };
  const at::Tensor q = apply_rope(rms_norm(heads(layer.q), layer.q_norm, eps), rope);
  const at::Tensor k = apply_rope(rms_norm(heads(layer.k), layer.k_norm, eps), rope);
  return linear(attention.attend(layer_idx, q, k, heads(layer.v)).flatten(-2), layer.o);
}

at::Tensor Decoder::layer_forward(int64_t layer_idx, const at::Tensor& hidden, const RopeTable& rope, AttentionContext& attention) const {
  const DecoderLayer& layer = layers_[static_cast<size_t>(layer_idx)];
  const at::Tensor attended = hidden + attention_block(layer_idx, hidden, rope, attention);
  const at::Tensor x = rms_norm(attended, layer.post_attention_norm, config_.rms_norm_eps);
  return attended + linear(at::silu(linear(x, layer.gate)) * linear(x, layer.up), layer.down);
}

at::Tensor Decoder::forward(const at::Tensor& embeds_TH, const at::Tensor& positions_3T, AttentionContext& attention,
                            const DeepstackInput& deepstack) const {
  const RopeTable rope = mrope_table(positions_3T, rope_columns_, embeds_TH.scalar_type());
  const std::shared_ptr<AttentionContext> again = checkpointing_ ? attention.for_recomputing() : nullptr;
  at::Tensor hidden = embeds_TH;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto layer_idx = static_cast<int64_t>(i);
    hidden = again == nullptr
                 ? layer_forward(layer_idx, hidden, rope, attention)
                 : checkpointed([this, layer_idx, rope, again](
                                    const std::vector<at::Tensor>& inputs) { return layer_forward(layer_idx, inputs[0], rope, *again); },
                                {hidden});
    if (deepstack.visual_idx_M.defined() && i < deepstack.features_MH.size()) {
      const at::Tensor feature = deepstack.features_MH[i].to(hidden.scalar_type());
      hidden = hidden.reshape({-1, config_.hidden_size}).index_add(0, deepstack.visual_idx_M, feature).view(hidden.sizes());
    }
  }
  return rms_norm(hidden, final_norm_, config_.rms_norm_eps);
}

}  // namespace rematch
