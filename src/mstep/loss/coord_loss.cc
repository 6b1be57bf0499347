#include "mstep/loss/coord_loss.h"

namespace rematch {
namespace {

constexpr double kLogitLimit = 1e4;

// The bins' share of a row, all [K, B] or [K] in float64.
struct BinTerms {
  at::Tensor p_KB, q_KB, cdf_gap_KB;
  at::Tensor soft_ce_K, w1_K, logsumexp_K;
};

BinTerms bin_terms(const at::Tensor& z_KB, const at::Tensor& q_KB) {
  BinTerms terms;
  terms.q_KB = q_KB;
  terms.logsumexp_K = at::logsumexp(z_KB, {1});
  const at::Tensor log_p_KB = z_KB - terms.logsumexp_K.unsqueeze(1);
  terms.p_KB = log_p_KB.exp();
  terms.soft_ce_K = at::mul(q_KB, log_p_KB).sum(1).neg();
  terms.cdf_gap_KB = at::sub(terms.p_KB, q_KB).cumsum(1);
  terms.w1_K = terms.cdf_gap_KB.abs().sum(1).div_(kNumBins);
  return terms;
}

// d(weighted loss) / d z of the coord logits: softCE's p − q, W1 through the softmax, and the gate's second logsumexp.
at::Tensor bin_gradient_KB(const BinTerms& terms, const at::Tensor& gate_open_K1, const LossOptions& options) {
  at::Tensor grad_KB = at::sub(terms.p_KB, terms.q_KB).mul_(options.soft_ce_weight);
  // p_j enters every CDF from bin j on: dW1/dp_j = Σ_{k≥j} sign_k / 1000.
  const at::Tensor reach_KB = terms.cdf_gap_KB.sign().flip({1}).cumsum(1).flip({1}).div_(kNumBins);
  const at::Tensor mean_reach_K1 = at::mul(terms.p_KB, reach_KB).sum(1, true);
  grad_KB.add_(at::mul(terms.p_KB, at::sub(reach_KB, mean_reach_K1)), options.w1_weight);
  grad_KB.sub_(at::mul(terms.p_KB, gate_open_K1), options.gate_weight);
  return grad_KB;
}

}  // namespace

at::Tensor sanitise_logits(const at::Tensor& logits) {
  return at::nan_to_num(logits.to(at::kFloat), 0.0, kLogitLimit, -kLogitLimit).clamp_(-kLogitLimit, kLogitLimit);
}

at::Tensor coord_targets_KB(const at::Tensor& bins_K, const LossOptions& options) {
  const at::Tensor bins_B = at::arange(kNumBins, bins_K.options().dtype(at::kDouble));
  const at::Tensor distance_KB = bins_B.unsqueeze(0) - bins_K.to(at::kDouble).unsqueeze(1);
  at::Tensor weights_KB = at::div(distance_KB, options.target_sigma).square_().mul_(-0.5).exp_();
  if (options.target_truncate) weights_KB.masked_fill_(distance_KB.abs().gt(*options.target_truncate), 0.0);
  return weights_KB.div_(weights_KB.sum(1, true));
}

CoordChunk coord_chunk(const at::Tensor& logits_KV, const at::Tensor& coord_ids_B, const at::Tensor& bins_K, const at::Tensor& is_prefix_K,
                       const LossOptions& options, double scale, bool needs_grad) {
  const double temperature = options.temperature_coord;
  at::Tensor s_KV = sanitise_logits(logits_KV);
  const at::Tensor z_KB = s_KV.index_select(1, coord_ids_B).to(at::kDouble).div_(temperature);
  const BinTerms terms = bin_terms(z_KB, coord_targets_KB(bins_K, options));

  const at::Tensor max_K1 = s_KV.amax(1, true);
  at::Tensor exp_KV = s_KV.sub_(max_K1).div_(temperature).exp_();
  const at::Tensor sum_K = exp_KV.sum(1, false, at::kDouble);
  const at::Tensor logsumexp_all_K = max_K1.squeeze(1).to(at::kDouble).div_(temperature).add_(sum_K.log());
  const at::Tensor gate_K = at::sub(logsumexp_all_K, terms.logsumexp_K).clamp_min_(0.0);

  const at::Tensor weighted_K = terms.soft_ce_K * options.soft_ce_weight + terms.w1_K * options.w1_weight + gate_K * options.gate_weight;
  const at::Tensor prefix_sum = at::mul(weighted_K, is_prefix_K).sum();
  const at::Tensor append_sum = at::mul(weighted_K, is_prefix_K.logical_not()).sum();
  const at::Tensor sums = at::stack({terms.soft_ce_K.sum(), terms.w1_K.sum(), gate_K.sum(), prefix_sum, append_sum}).cpu();
  const double* values = sums.const_data_ptr<double>();
  CoordChunk chunk;
  chunk.soft_ce_sum = values[0];
  chunk.w1_sum = values[1];
  chunk.gate_sum = values[2];
  chunk.weighted_sum = {values[3], values[4]};
  if (!needs_grad) return chunk;

  const at::Tensor gate_open_K1 = gate_K.gt(0.0).unsqueeze(1);
  exp_KV.mul_(at::div(gate_open_K1, sum_K.unsqueeze(1)).mul_(options.gate_weight).to(at::kFloat));
  exp_KV.index_add_(1, coord_ids_B, bin_gradient_KB(terms, gate_open_K1, options).to(at::kFloat));
  // A sanitised logit is a constant: no gradient through NaN, ±inf or a value that was clamped. (Comparisons with NaN are false.)
  exp_KV.mul_(logits_KV.abs().le(kLogitLimit)).mul_(scale / temperature);
  chunk.grad_KV = exp_KV.to(logits_KV.scalar_type());
  return chunk;
}

}  // namespace rematch
