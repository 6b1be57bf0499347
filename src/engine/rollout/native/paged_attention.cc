#include "engine/rollout/native/paged_attention.h"

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

}  // namespace

PagedAttention::PagedAttention(const at::Tensor& cache, const AttentionPlan& plan,
                               AtenStates* states, const Step& step)
    : cache_(cache), plan_(plan), states_(states) {
  if (states != nullptr) state_plan_ = states->plan(step);
}

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
  if (plan_.decode_slots_SL.defined()) decode(q_TND, keys, values, out);
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
  const int64_t num_sequences = plan_.decode_slots_SL.size(0), num_kv_heads = keys.size(1),
                head_dim = keys.size(2);
  const auto gather = [&](const at::Tensor& pages) {
    return pages.index_select(0, plan_.decode_slots_SL.flatten())
        .view({num_sequences, plan_.decode_slots_SL.size(1), num_kv_heads, head_dim})
        .transpose(1, 2);
  };
  // Treats the query heads of a key head as its queries.
  const bool is_all = !plan_.decode_rows_S.defined();
  const at::Tensor q = is_all ? q_TND : q_TND.index_select(0, plan_.decode_rows_S);
  const at::Tensor grouped =
      q.reshape({num_sequences, num_kv_heads, q.size(1) / num_kv_heads, head_dim});
  const at::Tensor attended =
      masked_attention(grouped, gather(keys), gather(values), plan_.decode_mask_S11L);
  if (is_all) {
    out.copy_(attended.reshape(q.sizes()));
  } else {
    out.index_copy_(0, plan_.decode_rows_S, attended.reshape(q.sizes()));
  }
}

}  // namespace rematch
