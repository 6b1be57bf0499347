#include "engine/rollout/native/aten/paged_attention.h"

#include "base/error.h"

namespace rematch {
namespace {

void prefill(const AttentionPlan::VarlenPrefill& plan, const at::Tensor& q_TND,
             const at::Tensor& keys, const at::Tensor& values, at::Tensor& out) {
  out.index_copy_(
      0, plan.rows_P,
      varlen_attention(q_TND.index_select(0, plan.rows_P), keys.index_select(0, plan.slots_L),
                       values.index_select(0, plan.slots_L), plan.queries, plan.keys,
                       /*is_causal=*/true));
}

// Slots as pages, without the spare slot at the end.
at::Tensor in_pages(const at::Tensor& slots) {
  const int64_t num_pages = slots.size(0) / kPageTokens;
  return slots.narrow(0, 0, num_pages * kPageTokens)
      .view({num_pages, kPageTokens, slots.size(1), slots.size(2)});
}

}  // namespace

at::Tensor PagedAttention::mix_by_delta(int64_t layer_idx, const DeltaTokens& tokens) {
  REMATCH_CHECK(states_ != nullptr, "a step without states");
  return states_->mix(layer_idx, tokens, state_plan_);
}

at::Tensor PagedAttention::attend(int64_t layer_idx, const at::Tensor& q_TND,
                                  const at::Tensor& k_TND, const at::Tensor& v_TND) {
  at::Tensor keys = cache_.select(0, layer_idx).select(0, 0),
             values = cache_.select(0, layer_idx).select(0, 1);
  keys.index_copy_(0, plan_.slots_T, k_TND);
  values.index_copy_(0, plan_.slots_T, v_TND);
  at::Tensor out = at::empty_like(q_TND);
  if (plan_.decode.is_defined()) decode(q_TND, keys, values, out);
  if (plan_.varlen) prefill(*plan_.varlen, q_TND, keys, values, out);
  for (const AttentionPlan::Prefill& prefill : plan_.prefills) {
    const at::Tensor q =
        q_TND.narrow(0, prefill.first_row, prefill.num_rows).transpose(0, 1).unsqueeze(0);
    const at::Tensor k = keys.index_select(0, prefill.slots_L).transpose(0, 1).unsqueeze(0);
    const at::Tensor v = values.index_select(0, prefill.slots_L).transpose(0, 1).unsqueeze(0);
    out.narrow(0, prefill.first_row, prefill.num_rows)
        .copy_(masked_attention(q, k, v, prefill.mask)[0].transpose(0, 1));
  }
  return out;
}

void PagedAttention::decode(const at::Tensor& q_TND, const at::Tensor& keys,
                            const at::Tensor& values, at::Tensor& out) const {
  const bool is_all = !plan_.decode_rows_S.defined();
  const at::Tensor q_SND = is_all ? q_TND : q_TND.index_select(0, plan_.decode_rows_S);
  const at::Tensor attended =
      plan_.decode.pages.is_defined()
          ? paged_attention(q_SND, in_pages(keys), in_pages(values), plan_.decode.pages)
          : attend_to_gathered(q_SND, keys, values);
  if (is_all) {
    out.copy_(attended);
  } else {
    out.index_copy_(0, plan_.decode_rows_S, attended);
  }
}

at::Tensor PagedAttention::attend_to_gathered(const at::Tensor& q_SND, const at::Tensor& keys,
                                              const at::Tensor& values) const {
  const at::Tensor& slots_SL = plan_.decode.slots_SL;
  const int64_t num_sequences = slots_SL.size(0), num_kv_heads = keys.size(1),
                head_dim = keys.size(2);
  const auto gather = [&](const at::Tensor& slots) {
    return slots.index_select(0, slots_SL.flatten())
        .view({num_sequences, slots_SL.size(1), num_kv_heads, head_dim})
        .transpose(1, 2);
  };
  // Treats the query heads of a key head as its queries.
  const at::Tensor grouped =
      q_SND.reshape({num_sequences, num_kv_heads, q_SND.size(1) / num_kv_heads, head_dim});
  return masked_attention(grouped, gather(keys), gather(values), plan_.decode.mask_S11L)
      .reshape(q_SND.sizes());
}

}  // namespace rematch
