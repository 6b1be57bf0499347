// Trial: soft cross-entropy of the next digit of a number, whatever digits stand before it.
#include <ATen/ATen.h>

#include <cmath>
#include <unordered_map>
#include <vector>

#include "learn/estep/answer/digit_trial.h"
#include "learn/mstep/loss/loss_table.h"

namespace rematch {
namespace {

constexpr int kPrefixes = 1002;

// log Σ exp(−(n − t)²/2σ²) over the numbers n in 0..1000 that begin with `prefix`.
double log_mass(int prefix, int t, double sigma) {
  double most = -1e300, sum = 0;
  std::vector<double> logs;
  for (int low = prefix, high = prefix; low <= 1000; low *= 10, high = high * 10 + 9) {
    for (int n = low; n <= std::min(high, 1000); ++n) {
      const double d = (n - t) / sigma;
      logs.push_back(-0.5 * d * d);
      most = std::max(most, logs.back());
    }
    if (prefix == 0) break;  // no leading zeros
  }
  if (logs.empty()) return -INFINITY;
  for (const double value : logs) sum += std::exp(value - most);
  return most + std::log(sum);
}

// Masses of the ten digits and of the end, after a prefix; sums to 1.
const std::array<float, 11>& distribution(int code) {
  static std::unordered_map<int, std::array<float, 11>> known;
  const auto found = known.find(code);
  if (found != known.end()) return found->second;
  const int t = code / kPrefixes, prefix = code % kPrefixes - 1;  // −1: none
  const double sigma = digit_sigma();
  std::array<double, 11> logs;
  logs.fill(-INFINITY);
  for (int digit = 0; digit < 10; ++digit) {
    if (prefix == 0) break;  // "0" ends
    const int next = prefix < 0 ? digit : prefix * 10 + digit;
    if (next <= 1000) logs[digit] = log_mass(next, t, sigma);
  }
  if (prefix >= 0) logs[10] = -0.5 * std::pow((prefix - t) / sigma, 2);
  double most = -INFINITY, sum = 0;
  for (const double value : logs) most = std::max(most, value);
  for (const double value : logs) sum += std::exp(value - most);
  std::array<float, 11> q;
  for (int i = 0; i < 11; ++i) q[i] = static_cast<float>(std::exp(logs[i] - most) / sum);
  return known.emplace(code, q).first->second;
}

at::Tensor digit_loss_K(LossChunk& chunk, double weight) {
  const int64_t num = chunk.targets_K.size(0);
  const int64_t* targets = chunk.targets_K.const_data_ptr<int64_t>();
  at::Tensor ids_KE = at::empty({num, 11}, at::kLong), q_KE = at::empty({num, 11}, at::kFloat);
  const std::array<int, 12>& ids = digit_ids();
  for (int64_t k = 0; k < num; ++k) {
    const bool is_last = targets[k] % 2 == 1;
    const std::array<float, 11>& q = distribution(static_cast<int>(targets[k] / 2));
    for (int e = 0; e < 11; ++e) {
      ids_KE.data_ptr<int64_t>()[k * 11 + e] = e < 10 ? ids[e] : ids[is_last ? 11 : 10];
      q_KE.data_ptr<float>()[k * 11 + e] = q[e];
    }
  }
  const at::Tensor log_p_KV = at::log_softmax(chunk.logits_KV.to(at::kFloat), 1);
  const at::Tensor loss_K = at::mul(q_KE, log_p_KV.gather(1, ids_KE)).sum(1).neg().to(at::kDouble);
  if (chunk.needs_gradient) {
    const double scale = chunk.scale * weight;
    at::Tensor grad_KV = log_p_KV.exp().mul_(scale);
    grad_KV.scatter_add_(1, ids_KE, q_KE * -scale);
    chunk.add_gradient(std::move(grad_KV));
  }
  return loss_K;
}

}  // namespace

LossTerm digit_term() {
  return {.name = "digit_ce", .kind = kDigitSlots, .weight = {}, .values_K = digit_loss_K};
}

}  // namespace rematch
