#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace rematch {

/// Parameters of a layer under their checkpoint names.
using LayerWeights = std::vector<std::pair<std::string, at::Tensor>>;

/// Calls `send` for each layer of the model in order, with the adapter merged into its weights.
/// Merged tensors, and values of blocks (ModelOptions::blocks), live for one layer.
void for_each_layer(const Model& model, const std::function<void(const LayerWeights&)>& send);

}  // namespace rematch
