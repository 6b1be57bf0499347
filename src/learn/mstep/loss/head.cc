#include "learn/mstep/loss/head.h"

namespace rematch {

Head Head::of(const LinearWeights& layer) {
  Head head{.logits_KV = [layer](const at::Tensor& hidden_KH) { return linear(hidden_KH, layer); },
            .weight_VH = {}};
  if (!layer.adapter && !layer.bias.defined()) {
    head.weight_VH = layer.weight;
    return head;
  }
  if (layer.adapter) head.parameters = layer.adapter->parameters();
  head.parameters.push_back(layer.weight);
  if (layer.bias.defined()) head.parameters.push_back(layer.bias);
  return head;
}

}  // namespace rematch
