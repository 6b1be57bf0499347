#include "model/nn/attention.h"

#include "base/error.h"
#include "model/nn/device_kernels.h"
#include "model/nn/fused_attention.h"
#include "model/nn/segment_plan.h"
#include "model/nn/short_conv.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

struct SdpaOptions {
  bool is_causal = false;
  at::Tensor mask;  ///< additive; may be undefined
};

// q [B, nq, Tq, D], k and v [B, nkv, Tk, D]; scale D^-0.5.
at::Tensor sdpa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                const SdpaOptions& options) {
  if (!options.mask.defined() && has_fused_attention(q, k, v))
    return fused_attention(q, k, v, options.is_causal);
  const std::optional<at::Tensor> mask =
      options.mask.defined() ? std::optional<at::Tensor>(options.mask) : std::nullopt;
  const bool is_grouped = q.size(1) != k.size(1);
  // No fused kernel of CUDA takes float32 with fewer key heads: it would make [heads, T, T].
  if (is_grouped && q.scalar_type() == at::kFloat && uses_device_kernels(q.device())) {
    const auto repeated = [&](const at::Tensor& x) {
      return x.unsqueeze(2)
          .expand({x.size(0), x.size(1), q.size(1) / x.size(1), x.size(2), x.size(3)})
          .flatten(1, 2);
    };
    return at::scaled_dot_product_attention(q, repeated(k), repeated(v), mask, 0.0,
                                            options.is_causal);
  }
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, options.is_causal,
                                          /*scale=*/std::nullopt, /*enable_gqa=*/is_grouped);
}

// Attention of q, k, v [T, heads, D], one call per group of the plan.
at::Tensor grouped_attention(const SegmentPlan& plan, const at::Tensor& q_TND,
                             const at::Tensor& k_TND, const at::Tensor& v_TND, bool is_causal) {
  const at::Tensor q = plan.to_groups(q_TND), k = plan.to_groups(k_TND), v = plan.to_groups(v_TND);
  std::vector<at::Tensor> outputs;
  for (const SegmentPlan::Group& group : plan.groups()) {
    const auto batched = [&](const at::Tensor& rows) {
      return rows.narrow(0, group.begin_row, group.num_segments * group.len)
          .unflatten(0, {group.num_segments, group.len})
          .transpose(1, 2);
    };
    outputs.push_back(sdpa(batched(q), batched(k), batched(v), {.is_causal = is_causal})
                          .transpose(1, 2)
                          .flatten(0, 1));
  }
  if (outputs.empty()) return at::empty_like(q_TND);
  return plan.from_groups(outputs.size() == 1 ? outputs[0] : at::cat(outputs, 0));
}

}  // namespace

at::Tensor AttentionContext::mix_by_delta(int64_t, const DeltaTokens&) {
  REMATCH_CHECK(false, "this context has no states for the delta rule");
  return {};
}

at::Tensor VarlenCausalAttention::mix_by_delta(int64_t, const DeltaTokens& tokens) {
  const at::Device device = tokens.qkv.device();
  if (!chunks_) {
    chunks_ = std::make_shared<const ChunkPlan>(segment_lens_, device);
    if (uses_device_kernels(device))
      conv_slots_ = upload(spaced_rows(segment_lens_, tokens.conv_weight.size(2)), device);
  }
  return chunked_delta_rule(
      {.qkv_TC = short_conv(tokens.qkv, tokens.conv_weight, segment_lens_, conv_slots_),
       .g_TN = tokens.g,
       .beta_TN = tokens.beta},
      tokens.heads, chunks_);
}

at::Tensor SegmentAttention::attend(const at::Tensor& q_TND, const at::Tensor& k_TND,
                                    const at::Tensor& v_TND) {
  const at::Device device = q_TND.device();
  const AttentionKernel kernel = choose_attention(
      {.device = device, .dtype = q_TND.scalar_type(), .head_dim = q_TND.size(-1)});
  if (kernel == AttentionKernel::kVarlen && q_TND.size(0) > 0) {
    if (!bounds_) {
      // Flash attention has a fast path for segments of one row each; empty segments would break
      // it.
      std::vector<int64_t> lens = segment_lens_;
      std::erase(lens, 0);
      bounds_ = SegmentBounds::from_lens(lens, device);
    }
    return varlen_attention(q_TND, k_TND, v_TND, *bounds_, *bounds_, is_causal_);
  }
  if (!plan_)
    plan_ = std::make_shared<SegmentPlan>(segment_lens_,
                                          SegmentPlan::Options{.may_pad = is_causal_}, device);
  return grouped_attention(*plan_, q_TND, k_TND, v_TND, is_causal_);
}

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& mask) {
  return sdpa(q, k, v, {.mask = mask});
}

}  // namespace rematch
