#include "engine/rollout/device_sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

constexpr double kRemovedLogit = -std::numeric_limits<double>::infinity();
constexpr double kNearTieOnDevice = 1e-5;  // as in sampler.cc

// Bits of base/random.h, on int64 tensors: their products wrap like those of unsigned numbers.
at::Tensor shifted(const at::Tensor& z, int64_t count) {
  return at::bitwise_and(at::bitwise_right_shift(z, count), (int64_t{1} << (64 - count)) - 1);
}

at::Tensor mix(at::Tensor z) {
  const auto signed_of = [](uint64_t value) { return static_cast<int64_t>(value); };
  z = z + signed_of(0x9E3779B97F4A7C15ULL);
  z = at::bitwise_xor(z, shifted(z, 30)) * signed_of(0xBF58476D1CE4E5B9ULL);
  z = at::bitwise_xor(z, shifted(z, 27)) * signed_of(0x94D049BB133111EBULL);
  return at::bitwise_xor(z, shifted(z, 31));
}

at::Tensor column(const std::vector<int64_t>& values, const at::Device& device) {
  return upload_index(values, device).unsqueeze(1);
}

// Removes all but the k best; equal values at the boundary are kept.
at::Tensor keep_top_k(const at::Tensor& logits_SV, int64_t k) {
  k = std::min(k, logits_SV.size(1));
  const at::Tensor threshold = std::get<0>(at::topk(logits_SV, k)).narrow(1, k - 1, 1);
  return logits_SV.masked_fill(logits_SV < threshold, kRemovedLogit);
}

// Removes tokens in ascending order while their cumulative probability is ≤ 1 − p; never the last.
at::Tensor keep_top_p(const at::Tensor& logits_SV, double p) {
  const auto [sorted, order] =
      at::sort(logits_SV, /*stable=*/std::optional<bool>(true), /*dim=*/-1, /*descending=*/false);
  const at::Tensor removed =
      at::softmax(sorted, -1, at::kDouble).cumsum(-1).le(1 - p).to(at::kBool);
  removed.narrow(1, removed.size(1) - 1, 1).fill_(false);
  return logits_SV.masked_fill(at::empty_like(removed).scatter_(1, order, removed), kRemovedLogit);
}

[[noreturn]] void throw_not_finite(const std::string& who, int64_t position) {
  throw data_error(
      {.error = "a logit of the model is not finite",
       .where = who,
       .what = fmt::format("generated position {}", position),
       .fix = "check the checkpoint for NaN weights, lower the learning rate, or use float32"});
}

}  // namespace

at::Tensor DeviceSampler::penalised(const at::Tensor& logits_SV,
                                    std::span<SamplerRow* const> rows) const {
  const int64_t vocab_size = logits_SV.size(1);
  std::vector<int64_t> seen;
  for (size_t s = 0; s < rows.size(); ++s) {
    for (const TokenId id : rows[s]->seen_ids_)
      seen.push_back(static_cast<int64_t>(s) * vocab_size + id);
  }
  if (seen.empty()) return logits_SV;
  const at::Tensor index = upload_index(seen, logits_SV.device());
  const at::Tensor flat = logits_SV.reshape({-1}), values = flat.index_select(0, index);
  const double penalty = options_.repetition_penalty;
  return flat.index_copy(0, index, at::where(values < 0, values * penalty, values / penalty))
      .view(logits_SV.sizes());
}

at::Tensor DeviceSampler::warped(at::Tensor logits_SV) const {
  if (options_.temperature == 0) return logits_SV;
  if (options_.temperature != 1) {
    const at::Tensor largest = logits_SV.amax(1, /*keepdim=*/true),
                     scaled = logits_SV / options_.temperature;
    // The choice is greedy where float32 overflows at a low temperature.
    const at::Tensor greedy =
        at::zeros_like(logits_SV).masked_fill(logits_SV < largest, kRemovedLogit);
    logits_SV = at::where(at::isfinite(scaled).all(1, /*keepdim=*/true), scaled, greedy);
  }
  if (options_.top_k > 0) logits_SV = keep_top_k(logits_SV, options_.top_k);
  if (options_.top_p < 1) logits_SV = keep_top_p(logits_SV, options_.top_p);
  return logits_SV;
}

at::Tensor DeviceSampler::draw(const at::Tensor& logits_SV, std::span<SamplerRow* const> rows) {
  const at::Device device = logits_SV.device();
  const int64_t vocab_size = logits_SV.size(1);
  if (!counters_V_.defined()) {
    counters_V_ = mix(at::arange(vocab_size, at::TensorOptions(device).dtype(at::kLong)) +
                      static_cast<int64_t>(0xD1B54A32D192ED03ULL));
  }
  std::vector<int64_t> keys;
  for (const SamplerRow* row : rows) {
    keys.push_back(
        static_cast<int64_t>(random_bits(row->key_, static_cast<uint64_t>(row->num_generated_))));
  }
  const at::Tensor bits_SV = mix(at::bitwise_xor(column(keys, device), counters_V_));
  const at::Tensor u_SV = (shifted(bits_SV, 11).to(at::kDouble) + 0.5) * 0x1.0p-53;
  return at::argmax(logits_SV.to(at::kDouble) - u_SV.log().neg().log(), 1);
}

std::vector<ChosenToken> DeviceSampler::next(const at::Tensor& logits_SV,
                                             std::span<SamplerRow* const> rows) {
  const at::NoGradGuard no_grad;
  const at::Tensor raw_SV = logits_SV.to(at::kFloat);
  const at::Tensor finite_S = at::isfinite(raw_SV).all(1), total_S = at::logsumexp(raw_SV, 1);
  const bool penalises = options_.repetition_penalty != 1.0;
  const at::Tensor chosen_SV = warped(penalises ? penalised(raw_SV, rows) : raw_SV);
  const bool is_greedy = options_.temperature == 0;
  const at::Tensor id_S = is_greedy ? at::argmax(chosen_SV, 1) : draw(chosen_SV, rows);
  at::Tensor near_tie_S = at::zeros_like(total_S);
  if (is_greedy) {
    const at::Tensor two =
        std::get<0>(at::topk(chosen_SV, std::min<int64_t>(2, chosen_SV.size(1))));
    const at::Tensor best = two.select(1, 0), second = two.select(1, two.size(1) - 1);
    near_tie_S =
        (best - second) < kNearTieOnDevice * at::maximum(best.abs(), chosen_SV.amin(1).abs());
  }
  const at::Tensor logprob_S = raw_SV.gather(1, id_S.unsqueeze(1)).squeeze(1) - total_S;
  // Ids are exact in float32: vocabularies have fewer than 2²⁴ tokens.
  const at::Tensor on_host =
      at::stack(
          {id_S.to(at::kFloat), logprob_S, near_tie_S.to(at::kFloat), finite_S.to(at::kFloat)}, 1)
          .cpu();
  std::vector<ChosenToken> tokens;
  const float* value = on_host.const_data_ptr<float>();
  for (SamplerRow* row : rows) {
    const ChosenToken token{static_cast<TokenId>(value[0]), value[1]};
    if (value[3] == 0 || !std::isfinite(token.logprob))
      throw_not_finite(row->who_, row->num_generated_);
    num_near_ties_ += value[2] != 0 ? 1 : 0;
    if (row->penalises_) row->remember(token.token_id);
    ++row->num_generated_;
    tokens.push_back(token);
    value += 4;
  }
  return tokens;
}

}  // namespace rematch
