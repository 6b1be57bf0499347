#include "engine/rollout/native/cpu/weights.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "model/kernels/delta.h"
#include "model/nn/rope.h"

namespace rematch {
namespace {

CpuRmsNorm load_norm(const CpuParameters& parameters, const NormDescription& norm) {
  CpuRmsNorm loaded{parameters.vector(norm.module + ".weight"), static_cast<float>(norm.eps)};
  if (norm.kind == NormKind::kRmsOffset) {
    for (float& weight : loaded.weight) weight += 1.0f;
  }
  return loaded;
}

// Queries, keys, values and gates. A projection with output gates has query and gate of each head
// side by side; the kernels read all queries together.
kernels::PackedWeights stack_inputs(CpuParameters& parameters,
                                    const AttentionDescription& attention, int64_t head_dim) {
  if (!attention.has_output_gate)
    return parameters.linear({&attention.q, &attention.k, &attention.v});
  REMATCH_CHECK(!attention.q.has_bias && !attention.k.has_bias && !attention.v.has_bias,
                attention.q.module);
  const auto weight = [&](const LinearDescription& linear) {
    return parameters.tensor(linear.module + ".weight");
  };
  const at::Tensor queries_and_gates =
      weight(attention.q).view({-1, 2, head_dim, attention.q.num_inputs});
  const auto half = [&](int64_t index) {
    return queries_and_gates.select(1, index).reshape({-1, attention.q.num_inputs}).contiguous();
  };
  return parameters.stacked({half(0), weight(attention.k), weight(attention.v), half(1)},
                            attention.q.module);
}

CpuAttention load_attention(CpuParameters& parameters, const AttentionDescription& description,
                            int64_t head_dim) {
  CpuAttention attention;
  if (description.q_norm) attention.q_norm = load_norm(parameters, *description.q_norm);
  if (description.k_norm) attention.k_norm = load_norm(parameters, *description.k_norm);
  attention.in = stack_inputs(parameters, description, head_dim);
  attention.out = parameters.linear(description.o);
  attention.has_gate = description.has_output_gate;
  return attention;
}

CpuDelta load_delta(CpuParameters& parameters, const DeltaDescription& description) {
  REMATCH_CHECK(description.conv_kernel == kernels::kDeltaTaps, description.conv);
  CpuDelta delta;
  delta.in = parameters.linear(
      {&description.in_qkv, &description.in_z, &description.in_b, &description.in_a});
  delta.out = parameters.linear(description.out);
  const auto num_channels = static_cast<size_t>(description.num_channels());
  const std::vector<float> taps_of_channels = parameters.vector(description.conv + ".weight");
  delta.taps.resize(taps_of_channels.size());
  for (size_t i = 0; i < taps_of_channels.size(); ++i)
    delta.taps[i % kernels::kDeltaTaps * num_channels + i / kernels::kDeltaTaps] =
        taps_of_channels[i];
  delta.rate = parameters.vector(description.a_log);
  for (float& rate : delta.rate) rate = std::exp(rate);
  delta.dt_bias = parameters.vector(description.dt_bias);
  delta.norm = load_norm(parameters, description.norm);
  return delta;
}

CpuLayer load_layer(CpuParameters& parameters, const LayerDescription& description,
                    int64_t head_dim) {
  CpuLayer layer;
  layer.mixer_norm = load_norm(parameters, description.mixer_norm);
  layer.mlp_norm = load_norm(parameters, description.mlp_norm);
  if (const AttentionDescription* const attention = description.attention()) {
    layer.mixer = load_attention(parameters, *attention, head_dim);
  } else {
    layer.mixer = load_delta(parameters, *description.delta());
  }
  layer.gate = parameters.linear(*description.mlp.gate);
  layer.up = parameters.linear(description.mlp.up);
  layer.down = parameters.linear(description.mlp.down);
  layer.deepstack = description.deepstack;
  return layer;
}

}  // namespace

CpuWeights load_cpu_weights(const Model& model) {
  const at::NoGradGuard no_grad;
  const TextDescription& text = model.description().text;
  CpuWeights weights;
  CpuParameters parameters(model, CpuParameters::Tower::kText);
  const std::vector<int64_t> cache_indices = text.cache_indices();
  for (const LayerDescription& layer : text.layers) {
    weights.layers.push_back(load_layer(parameters, layer, text.head_dim));
    weights.layers.back().cache_idx = cache_indices[weights.layers.size() - 1];
  }
  weights.embedding = parameters.matrix(text.embedding + ".weight");
  weights.head = parameters.head();
  weights.final_norm = load_norm(parameters, text.final_norm);
  const at::Tensor frequencies =
      inverse_frequencies(text.rope.theta, text.rope.width()).contiguous();
  weights.inverse_frequencies.assign(frequencies.const_data_ptr<float>(),
                                     frequencies.const_data_ptr<float>() + frequencies.numel());
  weights.axis = text.rope.axis_of_pair;
  weights.memory = std::move(parameters).memory();
  return weights;
}

}  // namespace rematch
