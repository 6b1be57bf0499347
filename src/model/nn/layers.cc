#include "model/nn/layers.h"

#include "model/nn/affine.h"

namespace rematch {

at::Tensor linear(const at::Tensor& x, const LinearWeights& layer) {
  if (layer.adapter) return layer.adapter->forward(x, layer);
  return base_linear(x, layer);
}

at::Tensor base_linear(const at::Tensor& x, const LinearWeights& layer) {
  return layer.packed ? four_bit_affine(x, layer.packed, layer.bias)
                      : affine(x, layer.weight, layer.bias);
}

at::Tensor linear_unread(const at::Tensor& x, const LinearWeights& layer) {
  return layer.adapter ? layer.adapter->unread(x, layer) : base_linear_unread(x, layer);
}

at::Tensor base_linear_unread(const at::Tensor& x, const LinearWeights& layer) {
  return layer.packed ? four_bit_affine_unread(x, layer.packed, layer.bias)
                      : affine_unread(x, layer.weight, layer.bias);
}

at::Tensor layer_norm(const at::Tensor& x, const LayerNormWeights& layer) {
  return at::layer_norm(x, {x.size(-1)}, layer.weight, layer.bias, layer.eps);
}

at::Tensor gelu_tanh(const at::Tensor& x) { return at::gelu(x, "tanh"); }

at::Tensor gelu_erf(const at::Tensor& x) { return at::gelu(x, "none"); }

}  // namespace rematch
