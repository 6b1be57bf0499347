#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "model/nn/four_bit.h"
#include "model/nn/results.h"

namespace rematch {

// Layers of both towers. All are differentiable and keep the input's dtype.

struct LinearWeights;

/// Modifies the output of a Linear (LoRA, DoRA: model/lora.h).
class LinearAdapter {
 public:
  virtual ~LinearAdapter() = default;
  /// The adapted output for `x`, in x's dtype; the base's tensors are frozen.
  virtual at::Tensor forward(const at::Tensor& x, const LinearWeights& base,
                             Results results) const = 0;
  /// The adapter's tensors.
  virtual std::vector<at::Tensor> parameters() const = 0;
};

/// Weights of an affine map; `bias` may be undefined.
struct LinearWeights {
  at::Tensor weight;  ///< [out, in]; on the meta device, a shape and a dtype, if it is packed
  at::Tensor bias;    ///< [out]
  std::shared_ptr<const LinearAdapter> adapter = nullptr;  ///< null = the plain map
  std::shared_ptr<const FourBitWeight> packed = nullptr;   ///< the weight's values in four bits
};

/// Weights of a LayerNorm.
struct LayerNormWeights {
  at::Tensor weight;
  at::Tensor bias;
  double eps = 1e-6;
};

/// x·Wᵀ + b over the last dimension, or the output of the layer's adapter.
/// @param results  kUnread: without the product of the base, where that is possible
at::Tensor linear(const at::Tensor& x, const LinearWeights& layer,
                  Results results = Results::kRead);

/// The same without the adapter.
at::Tensor base_linear(const at::Tensor& x, const LinearWeights& layer,
                       Results results = Results::kRead);

/// RMSNorm over the last dimension: normalised in float32, cast to x's dtype, then multiplied by
/// the weight (MODEL 2.2, 7).
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// LayerNorm over the last dimension.
at::Tensor layer_norm(const at::Tensor& x, const LayerNormWeights& layer);

/// GELU in its tanh form: vision blocks.
at::Tensor gelu_tanh(const at::Tensor& x);

/// GELU in its erf form: mergers.
at::Tensor gelu_erf(const at::Tensor& x);

}  // namespace rematch
