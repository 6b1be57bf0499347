#include "rollout/native/cpu_weights.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "rollout/native/cpu_parameters.h"
#include "nn/rope.h"

namespace rematch {
namespace {

CpuLayer take_layer(CpuParameters& parameters, const std::string& prefix) {
  CpuLayer layer;
  layer.input_norm = parameters.vector(prefix + "input_layernorm.weight");
  layer.post_attention_norm = parameters.vector(prefix + "post_attention_layernorm.weight");
  layer.q_norm = parameters.vector(prefix + "self_attn.q_norm.weight");
  layer.k_norm = parameters.vector(prefix + "self_attn.k_norm.weight");
  const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
  layer.qkv = parameters.packed({attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"});
  layer.o = parameters.packed({attention + "o_proj.weight"});
  layer.gate = parameters.packed({mlp + "gate_proj.weight"});
  layer.up = parameters.packed({mlp + "up_proj.weight"});
  layer.down = parameters.packed({mlp + "down_proj.weight"});
  return layer;
}

// MODEL 2: column j turns with h (j%3 == 1, j < 3·section[1]), w (j%3 == 2, j < 3·section[2]) or t.
std::vector<int> axis_of_columns(const TextConfig& config) {
  std::vector<int> axis(static_cast<size_t>(config.head_dim / 2), 0);
  for (int64_t j = 0; j < config.head_dim / 2; ++j) {
    const int64_t a = j % 3;
    if (a != 0 && j < 3 * config.mrope_section[static_cast<size_t>(a)]) axis[static_cast<size_t>(j)] = static_cast<int>(a);
  }
  return axis;
}

}  // namespace

CpuWeights take_cpu_weights(const Qwen3VL& model) {
  const at::NoGradGuard no_grad;
  const TextConfig& config = model.config().text;
  const std::string prefix = "model.language_model.";
  CpuWeights weights;
  CpuParameters parameters(model, {prefix, "lm_head."});
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    weights.layers.push_back(take_layer(parameters, fmt::format("{}layers.{}.", prefix, i)));
  }
  weights.embedding = parameters.matrix(prefix + "embed_tokens.weight");
  weights.head = parameters.packed({model.tied() ? prefix + "embed_tokens.weight" : "lm_head.weight"});
  weights.final_norm = parameters.vector(prefix + "norm.weight");
  const at::Tensor frequencies = inverse_frequencies(config.rope_theta, config.head_dim).contiguous();
  weights.inverse_frequencies.assign(frequencies.const_data_ptr<float>(), frequencies.const_data_ptr<float>() + frequencies.numel());
  weights.axis = axis_of_columns(config);
  weights.memory = std::move(parameters).memory();
  return weights;
}

}  // namespace rematch
