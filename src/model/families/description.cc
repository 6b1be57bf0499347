#include "model/families/description.h"

#include <algorithm>

namespace rematch {

ParameterPart ParameterParts::operator()(const std::string& parameter) const {
  for (const auto& [module, part] : modules) {
    if (parameter.starts_with(module) &&
        (parameter.size() == module.size() || parameter[module.size()] == '.'))
      return part;
  }
  return ParameterPart::kLlm;
}

std::vector<LinearDescription> LayerDescription::mixer_linears() const {
  if (const AttentionDescription* a = attention()) return {a->q, a->k, a->v, a->o};
  const DeltaDescription& d = *delta();
  return {d.in_qkv, d.in_z, d.in_b, d.in_a, d.out};
}

int64_t TextDescription::num_attention_layers() const {
  return std::ranges::count_if(
      layers, [](const LayerDescription& layer) { return layer.attention() != nullptr; });
}

std::vector<int64_t> TextDescription::cache_indices() const {
  std::vector<int64_t> indices;
  int64_t num_attention = 0, num_delta = 0;
  for (const LayerDescription& layer : layers)
    indices.push_back(layer.attention() != nullptr ? num_attention++ : num_delta++);
  return indices;
}

const DeltaDescription* TextDescription::delta() const {
  for (const LayerDescription& layer : layers) {
    if (layer.delta() != nullptr) return layer.delta();
  }
  return nullptr;
}

int64_t VisionDescription::window() const {
  for (const VisionBlockDescription& block : blocks) {
    if (block.window > 0) return block.window;
  }
  return 0;
}

bool ModelDescription::is_carried(const std::string& tensor) const {
  return std::ranges::any_of(carried,
                             [&](const std::string& prefix) { return tensor.starts_with(prefix); });
}

std::set<std::string> ModelDescription::float32_parameters() const {
  std::set<std::string> names;
  for (const LayerDescription& layer : text.layers) {
    if (const DeltaDescription* delta = layer.delta())
      names.insert({delta->a_log, delta->dt_bias, delta->norm.module + ".weight"});
  }
  return names;
}

std::vector<LinearDescription> ModelDescription::linears() const {
  std::vector<LinearDescription> linears;
  const auto add_mlp = [&](const MlpDescription& mlp) {
    if (mlp.gate) linears.push_back(*mlp.gate);
    linears.insert(linears.end(), {mlp.up, mlp.down});
  };
  for (const VisionBlockDescription& block : vision.blocks) {
    linears.insert(linears.end(), {block.qkv, block.proj});
    add_mlp(block.mlp);
  }
  linears.insert(linears.end(), {vision.merger.fc1, vision.merger.fc2});
  for (const MergerDescription& merger : vision.deepstack_mergers)
    linears.insert(linears.end(), {merger.fc1, merger.fc2});
  for (const LayerDescription& layer : text.layers) {
    const std::vector<LinearDescription> mixer = layer.mixer_linears();
    linears.insert(linears.end(), mixer.begin(), mixer.end());
    add_mlp(layer.mlp);
  }
  linears.push_back(text.head);
  return linears;
}

}  // namespace rematch
