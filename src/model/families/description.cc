#include "model/families/description.h"

namespace rematch {

ParameterPart ParameterParts::operator()(const std::string& parameter) const {
  for (const auto& [module, part] : modules) {
    if (parameter.starts_with(module) &&
        (parameter.size() == module.size() || parameter[module.size()] == '.'))
      return part;
  }
  return ParameterPart::kLlm;
}

int64_t VisionDescription::window() const {
  for (const VisionBlockDescription& block : blocks) {
    if (block.window > 0) return block.window;
  }
  return 0;
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
    linears.insert(linears.end(), {layer.q, layer.k, layer.v, layer.o});
    add_mlp(layer.mlp);
  }
  linears.push_back(text.head);
  return linears;
}

}  // namespace rematch
