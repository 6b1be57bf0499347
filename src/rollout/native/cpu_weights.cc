#include "rollout/native/cpu_weights.h"

#include <optional>
#include <utility>

#include "nn/rope.h"

namespace rematch {
namespace {

CpuRmsNorm load_norm(const CpuParameters& parameters, const NormDescription& norm) {
  return {parameters.vector(norm.module + ".weight"), static_cast<float>(norm.eps)};
}

CpuLayer load_layer(CpuParameters& parameters, const LayerDescription& description) {
  CpuLayer layer;
  layer.attention_norm = load_norm(parameters, description.attention_norm);
  layer.mlp_norm = load_norm(parameters, description.mlp_norm);
  if (description.q_norm) layer.q_norm = load_norm(parameters, *description.q_norm);
  if (description.k_norm) layer.k_norm = load_norm(parameters, *description.k_norm);
  layer.qkv = parameters.linear({&description.q, &description.k, &description.v});
  layer.o = parameters.linear(description.o);
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
  for (const LayerDescription& layer : text.layers)
    weights.layers.push_back(load_layer(parameters, layer));
  weights.embedding = parameters.matrix(text.embedding + ".weight");
  weights.head = parameters.head();
  weights.final_norm = load_norm(parameters, text.final_norm);
  const at::Tensor frequencies = inverse_frequencies(text.rope.theta, text.head_dim).contiguous();
  weights.inverse_frequencies.assign(frequencies.const_data_ptr<float>(),
                                     frequencies.const_data_ptr<float>() + frequencies.numel());
  weights.axis = text.rope.axis_of_pair;
  weights.memory = std::move(parameters).memory();
  return weights;
}

}  // namespace rematch
