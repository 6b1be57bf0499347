#pragma once
#include <ATen/core/Tensor.h>

#include "model/layer_source.h"
#include "model/nn/attention.h"
#include "model/nn/delta_rule.h"
#include "model/nn/layers.h"

namespace rematch {

DeltaHeads heads_of(const DeltaDescription& description);

/// The weights of a mixer by the gated delta rule (MODEL 13.3). Its linears must not move
/// (LayerSource::fill).
struct DeltaLayer {
  LinearWeights in_qkv, in_z, in_b, in_a, out;
  at::Tensor conv;  ///< [channels, 1, taps]
  at::Tensor a_log, dt_bias, norm;

  void fill(const DeltaDescription& description, LayerSource& source);
  /// @param x        [..., H], normalised
  /// @param results  of the products
  /// @return         the inputs of mix()
  std::vector<at::Tensor> project(const at::Tensor& x, Results results) const;
  /// @param projected  of project()
  /// @param cache_idx  of the layer among those of its kind
  /// @param results    of the last product
  at::Tensor mix(const std::vector<at::Tensor>& projected, const DeltaDescription& description,
                 int64_t cache_idx, AttentionContext& context, Results results) const;
};

}  // namespace rematch
