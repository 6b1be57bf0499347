#include "model/nn/fused_attention.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "model/kernels/bfloat16_attention.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of one head of a tensor [B, heads, T, D].
kernels::HalfRows rows_of(const at::Tensor& x, int64_t batch, int64_t head) {
  auto* data = static_cast<uint16_t*>(x.data_ptr());
  return {data + batch * x.stride(0) + head * x.stride(1), x.stride(2)};
}

kernels::ConstHalfRows const_rows_of(const at::Tensor& x, int64_t batch, int64_t head) {
  const kernels::HalfRows rows = rows_of(x, batch, head);
  return {rows.data, rows.stride};
}

at::Tensor with_dense_rows(const at::Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

// Empty, and stored token by token, so that heads join without a copy.
at::Tensor empty_by_token(const at::Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options())
      .transpose(1, 2);
}

struct Inputs {
  at::Tensor q, k, v;
  bool is_causal;

  kernels::AttentionHead head(int64_t batch, int64_t head) const {
    const int64_t key_head = head / (q.size(1) / k.size(1));
    return {.q = const_rows_of(q, batch, head),
            .k = const_rows_of(k, batch, key_head),
            .v = const_rows_of(v, batch, key_head),
            .num_tokens = q.size(2),
            .head_dim = q.size(3),
            .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(q.size(3)))),
            .is_causal = is_causal};
  }
  // Each head is one task, so that results do not depend on the number of threads.
  template <class Work>
  void for_heads(const Work& work) const {
    const int64_t num_heads = q.size(1);
    at::parallel_for(0, q.size(0) * num_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) work(i / num_heads, i % num_heads);
    });
  }
};

// Gradients of keys or values for every query head, as those of the heads that they share.
at::Tensor sum_shared(const at::Tensor& x_BHTD, const at::Tensor& like) {
  const int64_t num_sharing = x_BHTD.size(1) / like.size(1);
  const at::Tensor sum =
      num_sharing == 1 ? x_BHTD : x_BHTD.unflatten(1, {like.size(1), num_sharing}).sum(2);
  return sum.to(like.scalar_type());
}

struct FusedAttention : torch::autograd::Function<FusedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, bool is_causal) {
    const Inputs inputs{with_dense_rows(q), with_dense_rows(k), with_dense_rows(v), is_causal};
    const at::Tensor out = empty_by_token(q);
    const at::Tensor log_sums =
        at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
    inputs.for_heads([&](int64_t batch, int64_t head) {
      kernels::bfloat16_attention(inputs.head(batch, head), rows_of(out, batch, head),
                                  log_sums.select(0, batch).select(0, head).data_ptr<float>());
    });
    context->save_for_backward({inputs.q, inputs.k, inputs.v, out, log_sums});
    context->saved_data["is_causal"] = is_causal;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Inputs inputs{saved[0], saved[1], saved[2], context->saved_data["is_causal"].toBool()};
    const at::Tensor &out = saved[3], &log_sums = saved[4];
    const at::Tensor g_out = with_dense_rows(gradients[0]), g_q = empty_by_token(inputs.q);
    const at::Tensor g_k = at::empty(inputs.q.sizes(), log_sums.options()),
                     g_v = at::empty_like(g_k);
    inputs.for_heads([&](int64_t batch, int64_t head) {
      const auto at_head = [&](const at::Tensor& x) {
        return x.select(0, batch).select(0, head).data_ptr<float>();
      };
      kernels::bfloat16_attention_gradients(inputs.head(batch, head),
                                            {.out = const_rows_of(out, batch, head),
                                             .log_sums = at_head(log_sums),
                                             .gradient = const_rows_of(g_out, batch, head)},
                                            rows_of(g_q, batch, head), at_head(g_k), at_head(g_v));
    });
    return {g_q, sum_shared(g_k, inputs.k), sum_shared(g_v, inputs.v), at::Tensor()};
  }
};

}  // namespace

bool has_fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto is_half = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kBFloat16;
  };
  return is_half(q) && is_half(k) && is_half(v) && q.size(2) == k.size(2) &&
         q.size(3) == v.size(3) && q.size(3) % 16 == 0 && q.numel() > 0 &&
         kernels::has_bfloat16_attention();
}

at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           bool is_causal) {
  return FusedAttention::apply(q, k, v, is_causal);
}

}  // namespace rematch
