#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "model/families/description.h"
#include "nn/layers.h"

namespace rematch {

/// Gives the tensor of a checkpoint name after checking its shape.
using TensorSource = std::function<at::Tensor(const std::string& name, const std::vector<int64_t>& shape)>;

/// Is shown a Linear and the name of its module (the checkpoint name without `.weight`).
using LinearVisitor = std::function<void(const std::string& module, LinearWeights& layer)>;

/// What a description's parameters are, weight before bias.
inline LinearWeights take_linear(const TensorSource& source, const LinearDescription& linear) {
  LinearWeights layer;
  layer.weight = source(linear.module + ".weight", {linear.num_outputs, linear.num_inputs});
  if (linear.has_bias) layer.bias = source(linear.module + ".bias", {linear.num_outputs});
  return layer;
}

inline at::Tensor take_rms_norm(const TensorSource& source, const NormDescription& norm) {
  return source(norm.module + ".weight", {norm.width});
}

inline LayerNormWeights take_layer_norm(const TensorSource& source, const NormDescription& norm) {
  return {.weight = source(norm.module + ".weight", {norm.width}), .bias = source(norm.module + ".bias", {norm.width}), .eps = norm.eps};
}

}  // namespace rematch
