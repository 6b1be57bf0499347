#include "nn/graph_leaves.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <unordered_set>

namespace rematch {

std::vector<at::Tensor> graph_leaves(const at::Tensor& output) {
  if (!output.grad_fn()) return {};
  std::vector<at::Tensor> leaves;
  std::vector<torch::autograd::Node*> open{output.grad_fn().get()};
  std::unordered_set<torch::autograd::Node*> seen{nullptr};
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node))
      leaves.push_back(leaf->variable);
    for (const torch::autograd::Edge& edge : node->next_edges())
      open.push_back(edge.function.get());
  }
  return leaves;
}

}  // namespace rematch
