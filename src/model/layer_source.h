#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/families/description.h"
#include "model/nn/layers.h"

namespace rematch {

/// Fills a model's layers with tensors by checkpoint name and shape, and lists the filled Linears.
class LayerSource {
 public:
  using Take =
      std::function<at::Tensor(const std::string& name, const std::vector<int64_t>& shape)>;
  /// Fills a Linear's weight.
  using TakeWeight = std::function<void(LinearWeights& layer, const LinearDescription& linear)>;
  /// Gives the weights of a block their values, before each use; empty = they always have them
  /// (model/nn/block_weights.h).
  using Need = std::function<void()>;
  /// Takes the tensors of a block that `fill` asks for.
  using TakeBlock = std::function<Need(const std::function<void()>& fill)>;
  /// @param take_weight  empty: weights of Linears are taken as all others
  /// @param take_block   empty: all weights always have their values
  explicit LayerSource(Take take, TakeWeight take_weight = {}, TakeBlock take_block = {})
      : take(std::move(take)),
        take_weight_(std::move(take_weight)),
        take_block_(std::move(take_block)) {}

  const Take take;
  /// Fills a Linear, weight before bias. linears() points to it, so it must not move.
  void fill(LinearWeights& layer, const LinearDescription& linear) {
    if (take_weight_)
      take_weight_(layer, linear);
    else
      layer.weight = take(linear.module + ".weight", {linear.num_outputs, linear.num_inputs});
    if (linear.has_bias) layer.bias = take(linear.module + ".bias", {linear.num_outputs});
    linears_.emplace_back(linear.module, &layer);
  }
  at::Tensor rms_norm(const NormDescription& norm) const {
    return take(norm.module + ".weight", {norm.width});
  }
  /// A norm of either kind; an RMSNorm has no bias.
  LayerNormWeights norm(const NormDescription& norm) const {
    LayerNormWeights weights{
        .weight = take(norm.module + ".weight", {norm.width}), .bias = {}, .eps = norm.eps};
    if (norm.kind == NormKind::kLayer) weights.bias = take(norm.module + ".bias", {norm.width});
    return weights;
  }

  /// Fills a block of a tower by `fill`, which takes its tensors from this source.
  Need fill_block(const std::function<void()>& fill) const {
    if (take_block_) return take_block_(fill);
    fill();
    return {};
  }

  /// The filled Linears by module, in order.
  const std::vector<std::pair<std::string, LinearWeights*>>& linears() const { return linears_; }

 private:
  TakeWeight take_weight_;
  TakeBlock take_block_;
  std::vector<std::pair<std::string, LinearWeights*>> linears_;
};

}  // namespace rematch
