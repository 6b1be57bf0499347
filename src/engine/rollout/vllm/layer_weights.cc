#include "engine/rollout/vllm/layer_weights.h"

#include "model/adapter.h"

namespace rematch {
namespace {

// The prefix up to the layer number, such as "model.language_model.layers.12"; for a name without a
// number, the module.
std::string layer_name(const std::string& name) {
  for (const char* const stem : {".layers.", ".blocks.", "deepstack_merger_list."}) {
    const size_t start = name.find(stem);
    if (start != std::string::npos)
      return name.substr(0, name.find('.', start + std::string(stem).size()));
  }
  return name.substr(0, name.rfind('.'));
}

// The parameter with the adapter merged into it. An offloaded weight is in host memory, where the
// product of A and B would take seconds; it is merged on the model's device, one at a time.
at::Tensor value_of(const NamedParameter& parameter, const Model& model) {
  if (!model.adapter()) return parameter.tensor;
  if (!model.adapter()->changes(parameter)) return model.adapter()->merge(parameter);
  return model.adapter()->merge({parameter.name, parameter.values().to(model.device())});
}

}  // namespace

void for_each_layer(const Model& model, const std::function<void(const LayerWeights&)>& send) {
  LayerWeights layer;
  const auto flush = [&] {
    if (!layer.empty()) send(layer);
    layer.clear();
  };
  for (const NamedParameter& parameter : model.parameters()) {
    if (!layer.empty() && layer_name(layer.back().first) != layer_name(parameter.name)) flush();
    layer.emplace_back(parameter.name, value_of(parameter, model));
  }
  flush();
}

}  // namespace rematch
