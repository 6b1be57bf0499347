#include "packed_forward_model.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/hf_dir.h"
#include "checkpoint/model_dir.h"
#include "model/decoder.h"
#include "model/families/family.h"
#include "model/vision_tower.h"

namespace rematch::bench {
namespace {

// Norms are one, biases zero, matrices normal with deviation fan_in^-1/2: activations neither
// vanish nor grow.
at::Tensor random_weight(const std::string& name, const std::vector<int64_t>& shape) {
  const bool is_bias = name.ends_with("bias");
  if (is_bias || shape.size() == 1) return at::full(shape, is_bias ? 0.0 : 1.0);
  int64_t fan_in = 1;
  for (size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
  return at::randn(shape) / std::sqrt(static_cast<double>(fan_in));
}

}  // namespace

void write_random_model(const std::string& source, const std::string& directory,
                        const RandomModelSize& size) {
  at::manual_seed(0);
  copy_companions(source, directory, {"config.json"});
  Json config = read_json_file(join_path(source, "config.json"));
  Json& text = config["text_config"];
  text["hidden_size"] = size.hidden;
  text["intermediate_size"] = size.intermediate;
  text["num_hidden_layers"] = size.layers;
  text["num_attention_heads"] = size.heads;
  text["num_key_value_heads"] = size.kv_heads;
  text["head_dim"] = size.head_dim;
  Json& vision = config["vision_config"];
  vision["hidden_size"] = size.vision_hidden;
  vision["intermediate_size"] = size.vision_intermediate;
  vision["depth"] = size.vision_depth;
  vision["num_heads"] = size.vision_heads;
  vision["out_hidden_size"] = size.hidden;
  write_file_atomic(join_path(directory, "config.json"), python_json(config, 2) + "\n");

  const ModelDescription model = describe_model(directory);
  std::vector<TensorEntry> tensors;
  LayerSource layers([&](const std::string& name, const std::vector<int64_t>& shape) {
    return tensors.emplace_back(TensorEntry{name, random_weight(name, shape)}).tensor;
  });
  const VisionTower tower(model.vision, layers);
  layers.take(model.text.embedding + ".weight", {model.text.vocab_size, model.text.hidden_size})
      .mul_(0.4);
  const Decoder decoder(model.text, layers);
  write_hf_weights(directory, tensors);
}

}  // namespace rematch::bench
