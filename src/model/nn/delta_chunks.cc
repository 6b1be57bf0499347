#include "model/nn/delta_chunks.h"

#include <cmath>

#include "model/nn/batched_product.h"

namespace rematch {
namespace {

constexpr int64_t kChunk = ChunkPlan::kChunk;
constexpr double kNormEps = 1e-6;

at::Tensor transposed(const at::Tensor& x) { return x.transpose(-1, -2); }
at::Tensor row_sums(const at::Tensor& x) { return x.sum(-1, /*keepdim=*/true); }

at::Tensor join_heads(const at::Tensor& x) { return x.transpose(1, 2).flatten(-2); }

double query_scale(const DeltaHeads& heads) {
  return 1 / std::sqrt(static_cast<double>(heads.key_dim));
}

int64_t num_sharing(const DeltaHeads& heads) { return heads.num_value_heads / heads.num_key_heads; }

// Key heads for the value heads that share them.
at::Tensor share(const at::Tensor& x, const DeltaHeads& heads) {
  return num_sharing(heads) == 1 ? x : x.repeat_interleave(num_sharing(heads), 1);
}

at::Tensor sum_shared(const at::Tensor& x, const DeltaHeads& heads) {
  return num_sharing(heads) == 1 ? x
                                 : x.unflatten(1, {heads.num_key_heads, num_sharing(heads)}).sum(2);
}

// exp(total_i − total_j), 0 for j after i. @param total  [n, N, C] sums of g
at::Tensor decays(const at::Tensor& total) {
  // Bounds before exp, because positive differences would overflow.
  return (total.unsqueeze(-1) - total.unsqueeze(-2)).clamp_max_(0).exp_().tril_();
}

}  // namespace

L2Normalised::L2Normalised(const at::Tensor& x)
    : factor(at::rsqrt(row_sums(x * x) + kNormEps)), value(x * factor) {}

at::Tensor L2Normalised::gradient(const at::Tensor& g) const {
  return factor * (g - value * row_sums(g * value));
}

at::Tensor split_heads(const at::Tensor& x, int64_t num_heads) {
  return x.unflatten(-1, {num_heads, -1}).transpose(1, 2).to(at::kFloat).contiguous();
}

DeltaChunks::DeltaChunks(const DeltaInputs& inputs, const DeltaHeads& delta_heads,
                         const ChunkPlan& plan, int64_t first, int64_t count)
    : heads(delta_heads),
      q_normalised(
          split_heads(plan.to_chunks(inputs.qkv_TC.narrow(1, 0, heads.key_width()), first, count),
                      heads.num_key_heads)),
      k_normalised(
          split_heads(plan.to_chunks(inputs.qkv_TC.narrow(1, heads.key_width(), heads.key_width()),
                                     first, count),
                      heads.num_key_heads)),
      q(share(q_normalised.value * query_scale(heads), heads)),
      k(share(k_normalised.value, heads)),
      v(split_heads(
          plan.to_chunks(inputs.qkv_TC.narrow(1, 2 * heads.key_width(),
                                              heads.num_channels() - 2 * heads.key_width()),
                         first, count),
          heads.num_value_heads)) {
  const auto per_head = [&](const at::Tensor& x_TN) {
    return plan.to_zeroed_chunks(x_TN, first, count).transpose(1, 2).contiguous();
  };
  beta = per_head(inputs.beta_TN).unsqueeze(-1);
  const at::Tensor total = per_head(inputs.g_TN).cumsum(-1);
  decay = decays(total);
  from_start = total.exp().unsqueeze(-1);
  to_end = (total.narrow(-1, kChunk - 1, 1) - total).exp_().unsqueeze(-1);
  across = from_start.narrow(-2, kChunk - 1, 1).contiguous();
  overlap = batched_product(k * beta, transposed(k)).mul_(decay).tril_(-1);
  const at::Tensor identity = at::eye(kChunk, total.options());
  inverse = at::linalg_solve_triangular(overlap, identity.expand_as(overlap), /*upper=*/false,
                                        /*left=*/true, /*unitriangular=*/true)
                .contiguous();
  u = batched_product(inverse, v * beta);
  w = batched_product(inverse, k * (beta * from_start));
  q_from_start = q * from_start;
  k_to_end = k * to_end;
  attention = batched_product(q, transposed(k)).mul_(decay);
}

DeltaInputGradients chunk_gradients(const DeltaChunks& chunks, const DeltaScanGradients& scan) {
  const at::Tensor &q = chunks.q, &k = chunks.k, &beta = chunks.beta;
  const at::Tensor inverse = transposed(chunks.inverse);
  const at::Tensor d_beta_v = batched_product(inverse, scan.u),
                   d_beta_k = batched_product(inverse, scan.w);
  // Gradients of the overlap: −(d_beta_v uᵀ + d_beta_k wᵀ), and of attention, both before the
  // decay.
  const at::Tensor d_overlap = (batched_product(d_beta_v, transposed(chunks.u)) +
                                batched_product(d_beta_k, transposed(chunks.w)))
                                   .neg_()
                                   .tril_(-1);
  // The sums of g enter every decay; a decay of token i over token j gives to i and takes from j.
  const at::Tensor exchanged = d_overlap * chunks.overlap + scan.attention * chunks.attention;
  at::Tensor d_total = row_sums(exchanged) - exchanged.sum(-2).unsqueeze(-1);
  const at::Tensor d_kk = d_overlap * chunks.decay, d_qk = scan.attention * chunks.decay;
  const at::Tensor beta_from_start = beta * chunks.from_start, d_kk_k = batched_product(d_kk, k);

  const at::Tensor d_q = chunks.from_start * scan.q_from_start + batched_product(d_qk, k);
  const at::Tensor d_k = batched_product(transposed(d_qk), q) +
                         batched_product(transposed(d_kk), k * beta) + beta * d_kk_k +
                         beta_from_start * d_beta_k + chunks.to_end * scan.k_to_end;
  const at::Tensor k_grad = row_sums(k * d_beta_k);
  const at::Tensor d_beta =
      row_sums(k * d_kk_k) + row_sums(chunks.v * d_beta_v) + chunks.from_start * k_grad;
  const at::Tensor to_end = row_sums(scan.k_to_end * chunks.k_to_end);
  d_total += row_sums(scan.q_from_start * chunks.q_from_start) + beta_from_start * k_grad - to_end;
  d_total.narrow(-2, kChunk - 1, 1) +=
      to_end.sum(-2, /*keepdim=*/true) + scan.across * chunks.across;
  // g of a token is in its own sum and in those of all later tokens.
  const at::Tensor d_g =
      at::matmul(transposed(d_total), at::ones({kChunk, kChunk}, d_total.options()).tril())
          .squeeze(-2);

  const DeltaHeads& heads = chunks.heads;
  const at::Tensor d_q_raw =
      chunks.q_normalised.gradient(sum_shared(d_q, heads) * query_scale(heads));
  const at::Tensor d_k_raw = chunks.k_normalised.gradient(sum_shared(d_k, heads));
  return {at::cat({join_heads(d_q_raw), join_heads(d_k_raw), join_heads(beta * d_beta_v)}, -1),
          d_g.transpose(1, 2), d_beta.squeeze(-1).transpose(1, 2)};
}

}  // namespace rematch
