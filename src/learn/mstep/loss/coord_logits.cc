#include "learn/mstep/loss/coord_logits.h"

#include <cmath>
#include <utility>

#include "base/flow/sample.h"
#include "base/flow/segment.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

constexpr double kLogitLimit = 1e4;

at::Tensor sanitise(const at::Tensor& logits) {
  return at::nan_to_num(logits.to(at::kFloat), 0.0, kLogitLimit, -kLogitLimit)
      .clamp_(-kLogitLimit, kLogitLimit);
}

}  // namespace

LossTerm coord_term(const char* name, const LossKey& weight,
                    at::Tensor (*values_K)(LossChunk& chunk, double weight)) {
  return {.name = name,
          .kind = kCoordSlots,
          .weight = weight,
          .keys = {kCoordTemperature, kTargetSigma, kTargetTruncate},
          .values_K = values_K};
}

at::Tensor coord_targets_KB(const at::Tensor& bins_K, const LossOptions& options) {
  const double truncate = options.value(kTargetTruncate);
  const at::Tensor bins_B = at::arange(kNumBins, bins_K.options().dtype(at::kDouble));
  const at::Tensor distance_KB = bins_B.unsqueeze(0) - bins_K.to(at::kDouble).unsqueeze(1);
  at::Tensor weights_KB =
      at::div(distance_KB, options.value(kTargetSigma)).square_().mul_(-0.5).exp_();
  if (std::isfinite(truncate)) weights_KB.masked_fill_(distance_KB.abs().gt(truncate), 0.0);
  return weights_KB.div_(weights_KB.sum(1, true));
}

CoordLogits::CoordLogits(const LossChunk& chunk)
    : temperature_(chunk.options.value(kCoordTemperature)) {
  const auto& ids = chunk.options.coord_token_ids;
  ids_B_ = upload_index({ids.begin(), ids.end()}, chunk.logits_KV.device());
  at::Tensor s_KV = sanitise(chunk.logits_KV);
  const at::Tensor z_KB = s_KV.index_select(1, ids_B_).to(at::kDouble).div_(temperature_);
  target_KB = coord_targets_KB(chunk.targets_K, chunk.options);
  logsumexp_K = at::logsumexp(z_KB, {1});
  log_p_KB = z_KB - logsumexp_K.unsqueeze(1);
  p_KB = log_p_KB.exp();

  const at::Tensor max_K1 = s_KV.amax(1, true);
  exp_KV_ = s_KV.sub_(max_K1).div_(temperature_).exp_();
  sum_all_K = exp_KV_.sum(1, false, at::kDouble);
  logsumexp_all_K = max_K1.squeeze(1).to(at::kDouble).div_(temperature_).add_(sum_all_K.log());
}

void CoordLogits::add_to_bins(at::Tensor grad_KB, double weight) {
  grad_KB_ = grad_KB_.defined() ? grad_KB_.add_(grad_KB, weight) : grad_KB.mul_(weight);
}

void CoordLogits::add_to_all(const at::Tensor& factor_K1) {
  factor_K1_ = factor_K1_.defined() ? factor_K1_ + factor_K1 : factor_K1;
}

void CoordLogits::add_gradient_to(LossChunk& chunk) {
  if (factor_K1_.defined()) {
    exp_KV_.mul_(factor_K1_.to(at::kFloat));
  } else {
    exp_KV_.zero_();
  }
  if (grad_KB_.defined()) exp_KV_.index_add_(1, ids_B_, grad_KB_.to(at::kFloat));
  // A sanitised logit is a constant: no gradient through NaN, ±inf or a clamped value. (Comparisons
  // with NaN are false.)
  exp_KV_.mul_(chunk.logits_KV.abs().le(kLogitLimit)).mul_(chunk.scale / temperature_);
  chunk.add_gradient(std::move(exp_KV_));
}

}  // namespace rematch
