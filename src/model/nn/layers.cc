#include "model/nn/layers.h"

#include "model/nn/affine.h"

namespace rematch {

at::Tensor linear(const at::Tensor& x, const LinearWeights& layer, Results results) {
  return layer.adapter ? layer.adapter->forward(x, layer, results) : base_linear(x, layer, results);
}

at::Tensor base_linear(const at::Tensor& x, const LinearWeights& layer, Results results) {
  return layer.packed ? four_bit_affine(x, layer.packed, layer.bias, results)
                      : affine(x, layer.weight, layer.bias, results);
}

at::Tensor layer_norm(const at::Tensor& x, const LayerNormWeights& layer) {
  return at::layer_norm(x, {x.size(-1)}, layer.weight, layer.bias, layer.eps);
}

at::Tensor gelu_tanh(const at::Tensor& x) { return at::gelu(x, "tanh"); }

at::Tensor gelu_erf(const at::Tensor& x) { return at::gelu(x, "none"); }

}  // namespace rematch
