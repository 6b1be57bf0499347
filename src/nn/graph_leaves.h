#pragma once
#include <ATen/ATen.h>

#include <vector>

namespace rematch {

/// The leaves that require grad behind `output`'s graph, each once, in an order that depends on the
/// graph alone. Empty without a graph. Cost: one visit of every node.
std::vector<at::Tensor> graph_leaves(const at::Tensor& output);

}  // namespace rematch
