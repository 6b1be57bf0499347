#include "estep/rollout/native/cpu_weights.h"

#include <fmt/core.h>

#include <map>
#include <string>

#include "base/error.h"
#include "estep/rollout/native/cpu_pages.h"
#include "model/adapter.h"
#include "nn/rope.h"

namespace rematch {
namespace {

// Smaller matrices stay in the caches, with their page tables.
constexpr int64_t kWorthLargePages = 1 << 20;

// Finds parameters by name, through the adapter if there is one, and keeps what it found alive.
class Taker {
 public:
  Taker(const Qwen3VL& model, CpuWeights& weights) : model_(model), weights_(weights) {
    REMATCH_CHECK(model.device().is_cpu(), model.device().str());
    for (const NamedParameter& parameter : model.parameters()) parameters_[parameter.name] = &parameter;
  }

  kernels::Weights matrix(const std::string& name) {
    const at::Tensor tensor = take(name);
    REMATCH_CHECK(tensor.dim() == 2, name);
    weights_.kept.push_back(tensor);
    if (static_cast<int64_t>(tensor.nbytes()) >= kWorthLargePages) prefer_large_pages(tensor.const_data_ptr(), static_cast<int64_t>(tensor.nbytes()));
    const bool is_float = tensor.scalar_type() == at::kFloat;
    REMATCH_CHECK(is_float || tensor.scalar_type() == at::kBFloat16, fmt::format("{} is {}", name, at::toString(tensor.scalar_type())));
    return {.data = tensor.const_data_ptr(),
            .storage = is_float ? kernels::Storage::kFloat : kernels::Storage::kBfloat16,
            .num_outputs = tensor.size(0),
            .num_inputs = tensor.size(1)};
  }

  std::vector<float> vector(const std::string& name) const {
    const at::Tensor tensor = take(name).to(at::kFloat).contiguous();
    const float* const values = tensor.const_data_ptr<float>();
    return {values, values + tensor.numel()};
  }

 private:
  at::Tensor take(const std::string& name) const {
    const auto found = parameters_.find(name);
    REMATCH_CHECK(found != parameters_.end(), name);
    const auto& adapter = model_.adapter();
    return (adapter == nullptr ? found->second->tensor : adapter->merged(*found->second)).detach().contiguous();
  }

  const Qwen3VL& model_;
  CpuWeights& weights_;
  std::map<std::string, const NamedParameter*> parameters_;
};

CpuLayer take_layer(Taker& taker, const std::string& prefix) {
  CpuLayer layer;
  layer.input_norm = taker.vector(prefix + "input_layernorm.weight");
  layer.post_attention_norm = taker.vector(prefix + "post_attention_layernorm.weight");
  layer.q_norm = taker.vector(prefix + "self_attn.q_norm.weight");
  layer.k_norm = taker.vector(prefix + "self_attn.k_norm.weight");
  layer.q = taker.matrix(prefix + "self_attn.q_proj.weight");
  layer.k = taker.matrix(prefix + "self_attn.k_proj.weight");
  layer.v = taker.matrix(prefix + "self_attn.v_proj.weight");
  layer.o = taker.matrix(prefix + "self_attn.o_proj.weight");
  layer.gate = taker.matrix(prefix + "mlp.gate_proj.weight");
  layer.up = taker.matrix(prefix + "mlp.up_proj.weight");
  layer.down = taker.matrix(prefix + "mlp.down_proj.weight");
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
  Taker taker(model, weights);
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    weights.layers.push_back(take_layer(taker, fmt::format("{}layers.{}.", prefix, i)));
  }
  weights.embedding = taker.matrix(prefix + "embed_tokens.weight");
  weights.head = model.tied() ? weights.embedding : taker.matrix("lm_head.weight");
  weights.final_norm = taker.vector(prefix + "norm.weight");
  const at::Tensor frequencies = inverse_frequencies(config.rope_theta, config.head_dim).contiguous();
  weights.inverse_frequencies.assign(frequencies.const_data_ptr<float>(), frequencies.const_data_ptr<float>() + frequencies.numel());
  weights.axis = axis_of_columns(config);
  return weights;
}

}  // namespace rematch
