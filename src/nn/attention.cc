#include "nn/attention.h"

#include "base/error.h"
#include "nn/segment_plan.h"

namespace rematch {
namespace {

struct SdpaOptions {
  bool is_causal = false;
  at::Tensor mask;  ///< additive; may be undefined
};

// The only call of torch's attention. q [B, nq, Tq, D], k and v [B, nkv, Tk, D]; scale D^-0.5; never builds [T, T] itself.
at::Tensor sdpa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const SdpaOptions& options) {
  const std::optional<at::Tensor> mask = options.mask.defined() ? std::optional<at::Tensor>(options.mask) : std::nullopt;
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, options.is_causal, /*scale=*/std::nullopt,
                                          /*enable_gqa=*/q.size(1) != k.size(1));
}

// q, k, v [T, heads, D] attended group by group of the plan.
at::Tensor grouped_attention(const SegmentPlan& plan, const at::Tensor& q_TND, const at::Tensor& k_TND, const at::Tensor& v_TND,
                             bool is_causal) {
  const at::Tensor q = plan.to_groups(q_TND), k = plan.to_groups(k_TND), v = plan.to_groups(v_TND);
  std::vector<at::Tensor> outputs;
  for (const SegmentPlan::Group& group : plan.groups()) {
    const auto batched = [&](const at::Tensor& rows) {
      return rows.narrow(0, group.begin_row, group.num_segments * group.len).unflatten(0, {group.num_segments, group.len}).transpose(1, 2);
    };
    outputs.push_back(sdpa(batched(q), batched(k), batched(v), {.is_causal = is_causal}).transpose(1, 2).flatten(0, 1));
  }
  if (outputs.empty()) return at::empty_like(q_TND);
  return plan.from_groups(outputs.size() == 1 ? outputs[0] : at::cat(outputs, 0));
}

}  // namespace

at::Tensor VarlenCausalAttention::attend(int64_t, const at::Tensor& q_TND, const at::Tensor& k_TND, const at::Tensor& v_TND) {
  if (!plan_) plan_ = std::make_shared<SegmentPlan>(segment_lens_, SegmentPlan::Options{.may_pad = true}, q_TND.device());
  return grouped_attention(*plan_, q_TND, k_TND, v_TND, /*is_causal=*/true);
}

at::Tensor block_full_attention(const at::Tensor& q_NHD, const at::Tensor& k_NHD, const at::Tensor& v_NHD,
                                const std::vector<int64_t>& block_lens) {
  return grouped_attention(SegmentPlan(block_lens, {}, q_NHD.device()), q_NHD, k_NHD, v_NHD, /*is_causal=*/false);
}

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  return sdpa(q, k, v, {.mask = mask});
}

}  // namespace rematch
