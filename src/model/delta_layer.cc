#include "model/delta_layer.h"

#include "model/nn/more_norms.h"

namespace rematch {

DeltaHeads heads_of(const DeltaDescription& description) {
  return {.num_key_heads = description.num_key_heads,
          .num_value_heads = description.num_value_heads,
          .key_dim = description.key_head_dim,
          .value_dim = description.value_head_dim};
}

void DeltaLayer::fill(const DeltaDescription& description, LayerSource& source) {
  const std::vector<int64_t> per_head{description.num_value_heads};
  dt_bias = source.take(description.dt_bias, per_head);
  a_log = source.take(description.a_log, per_head);
  conv = source.take(description.conv + ".weight",
                     {description.num_channels(), 1, description.conv_kernel});
  norm = source.take(description.norm.module + ".weight", {description.norm.width});
  source.fill(out, description.out);
  source.fill(in_qkv, description.in_qkv);
  source.fill(in_z, description.in_z);
  source.fill(in_b, description.in_b);
  source.fill(in_a, description.in_a);
}

std::vector<at::Tensor> DeltaLayer::project(const at::Tensor& x, Results results) const {
  std::vector<at::Tensor> projected;
  for (const LinearWeights* layer : {&in_z, &in_qkv, &in_a, &in_b})
    projected.push_back(linear(x, *layer, results));
  return projected;
}

at::Tensor DeltaLayer::mix(const std::vector<at::Tensor>& projected,
                           const DeltaDescription& description, int64_t cache_idx,
                           AttentionContext& context, Results results) const {
  const at::Tensor z = projected[0].unflatten(-1, {-1, description.value_head_dim});
  const at::Tensor decay_rate = a_log.to(at::kFloat).exp().neg();
  const at::Tensor mixed = context.mix_by_delta(
      cache_idx,
      {.qkv = projected[1],
       .g = decay_rate * at::softplus(projected[2].to(at::kFloat) + dt_bias.to(at::kFloat)),
       .beta = projected[3].sigmoid().to(at::kFloat),
       .conv_weight = conv,
       .heads = heads_of(description)});
  const at::Tensor normed = gated_rms_norm(mixed, z, norm, description.norm.eps).flatten(-2);
  return linear(normed, out, results);
}

}  // namespace rematch
