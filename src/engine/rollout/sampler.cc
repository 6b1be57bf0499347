#include "engine/rollout/sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/option_range.h"
#include "base/random.h"
#include "model/kernels/rows.h"

namespace rematch {
namespace {

constexpr float kRemoved = -std::numeric_limits<float>::infinity();
constexpr double kNearTie = 1e-5;
// Separates this random stream from others that use (seed, epoch, sample), such as the object
// ordering.
constexpr uint64_t kRolloutStream = 0x726F6C6C6F7574ULL;

// An upper bound of −log(−log u) for u = (bits >> 11)·2⁻⁵³, from the leading ones of `bits`: let
// w = 1 − u. Then −log u ≥ w, so the noise is at most −log w, and w ≥ 2^−(leading ones + 1).
double noise_bound(uint64_t bits) { return 0.693147180559945309 * (std::countl_one(bits) + 1); }

struct Extremes {
  // second may equal best
  float best = kRemoved, second = kRemoved, lowest = -kRemoved;

  void take(float logit) {
    const float lesser = logit < best ? logit : best;
    second = lesser > second ? lesser : second;
    best = logit > best ? logit : best;
    lowest = logit < lowest ? logit : lowest;
  }
};

// Lane by lane, so that compilers vectorise it.
Extremes find_extremes(std::span<const float> logits_V) {
  constexpr size_t kLanes = 16;
  float best[kLanes], second[kLanes], lowest[kLanes];
  std::fill_n(best, kLanes, kRemoved);
  std::fill_n(second, kLanes, kRemoved);
  std::fill_n(lowest, kLanes, -kRemoved);
  const size_t whole = logits_V.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits_V[i + lane];
      const float lesser = logit < best[lane] ? logit : best[lane];
      second[lane] = lesser > second[lane] ? lesser : second[lane];
      best[lane] = logit > best[lane] ? logit : best[lane];
      lowest[lane] = logit < lowest[lane] ? logit : lowest[lane];
    }
  }
  Extremes all;
  for (size_t lane = 0; lane < kLanes && whole > 0; ++lane) {
    all.take(best[lane]);
    all.second = std::max(all.second, second[lane]);
    all.lowest = std::min(all.lowest, lowest[lane]);
  }
  for (size_t i = whole; i < logits_V.size(); ++i) all.take(logits_V[i]);
  return all;
}

/// Maximum and sum of the softmax of the logits.
/// @throws UserError (data) naming the sample if a logit is not finite
kernels::SoftmaxSum checked_softmax(std::span<const float> logits_V, const std::string& who,
                                    int64_t position) {
  const kernels::SoftmaxSum sum = kernels::softmax_sum(logits_V.data(), std::ssize(logits_V));
  if (sum.is_finite) return sum;
  const auto bad =
      std::ranges::find_if(logits_V, [](float logit) { return !std::isfinite(logit); });
  throw data_error(
      {.error = "a logit of the model is not finite",
       .where = who,
       .what = fmt::format("token {}, generated position {}: {}", bad - logits_V.begin(), position,
                           *bad),
       .fix = "check the checkpoint for NaN weights, lower the learning rate, or use float32"});
}

/// log of e^(logit − largest) / sum.
/// @throws UserError (data) naming the sample when it is −inf
float log_probability(float logit, const kernels::SoftmaxSum& sum, const std::string& who,
                      int64_t position) {
  const auto logprob =
      static_cast<float>(static_cast<double>(logit) - sum.largest - std::log(sum.sum));
  if (std::isfinite(logprob)) return logprob;
  throw data_error({.error = "the log-probability of a token is not finite",
                    .where = who,
                    .what = fmt::format("generated position {}: logit {}, the largest is {}",
                                        position, logit, sum.largest),
                    .fix = "check the checkpoint, or lower the temperature"});
}

double gumbel_noise(uint64_t bits) {
  // u in (0, 1): the half step keeps both logarithms finite.
  const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53;
  return -std::log(-std::log(u));
}

}  // namespace

void check_sampling_options(const GenerateOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    refuse_value("temperature", options.temperature, "0 (greedy) or more");
  }
  if (!(options.top_p >= 0 && options.top_p <= 1))
    refuse_value("top_p", options.top_p, "a value from 0 to 1 (1 = off)");
  if (options.top_k < 0) refuse_value("top_k", options.top_k, "a positive number, or off");
  if (!(options.repetition_penalty > 0) || !std::isfinite(options.repetition_penalty)) {
    refuse_value("repetition_penalty", options.repetition_penalty, "a value above 0 (1.0 = off)");
  }
  if (options.max_new_tokens < 1)
    refuse_value("max_new_tokens", options.max_new_tokens, "1 or more");
  if (options.batch_size < 1)
    refuse_value("rollout_generate_batch_size", options.batch_size, "1 or more");
}

SamplerRow::SamplerRow(const Prompt& prompt, const GenerateOptions& options, int64_t vocab_size)
    : key_(random_key(options.seed, kRolloutStream, prompt.epoch, prompt.sample_id)),
      penalises_(options.repetition_penalty != 1.0),
      who_(sample_name(prompt.sample_id, prompt.where)) {
  if (!penalises_) return;
  seen_.resize(static_cast<size_t>(vocab_size), false);
  for (const TokenId id : prompt.token_ids) remember(id);
}

void SamplerRow::remember(TokenId token_id) {
  if (token_id < 0 || static_cast<size_t>(token_id) >= seen_.size() || seen_[token_id]) return;
  seen_[token_id] = true;
  seen_ids_.push_back(token_id);
}

Sampler::Sampler(const GenerateOptions& options) : options_(options) {
  check_sampling_options(options);
}

ChosenToken Sampler::next(std::span<float> logits_V, SamplerRow& row) {
  const kernels::SoftmaxSum sum = checked_softmax(logits_V, row.who_, row.num_generated_);
  // Truncation does not change the logits of tokens that can be chosen.
  const bool rescales = row.penalises_ || (options_.temperature != 0 && options_.temperature != 1);
  if (rescales) raw_.assign(logits_V.begin(), logits_V.end());
  warp(logits_V, row);
  const TokenId token_id = options_.temperature == 0 ? greedy(logits_V, row) : draw(logits_V, row);
  const auto i = static_cast<size_t>(token_id);
  const float logprob =
      log_probability(rescales ? raw_[i] : logits_V[i], sum, row.who_, row.num_generated_);
  if (row.penalises_) row.remember(token_id);
  ++row.num_generated_;
  return {token_id, logprob};
}

void Sampler::process(std::span<float> logits_V, const SamplerRow& row) {
  checked_softmax(logits_V, row.who_, row.num_generated_);
  warp(logits_V, row);
}

void Sampler::warp(std::span<float> logits_V, const SamplerRow& row) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const TokenId id : row.seen_ids_) {
    float& logit = logits_V[id];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
  if (options_.temperature == 0) return;
  apply_temperature(logits_V);
  if (options_.top_k > 0) keep_top_k(logits_V);
  if (options_.top_p < 1) keep_top_p(logits_V);
}

void Sampler::apply_temperature(std::span<float> logits_V) const {
  const auto temperature = static_cast<float>(options_.temperature);
  if (temperature == 1.0f) return;
  const auto [lowest, highest] = std::minmax_element(logits_V.begin(), logits_V.end());
  if (std::isfinite(*lowest / temperature) && std::isfinite(*highest / temperature)) {
    for (float& logit : logits_V) logit /= temperature;
    return;
  }
  // float32 overflows at this low temperature: choose greedily.
  const auto best = std::ranges::max_element(logits_V) - logits_V.begin();
  std::ranges::fill(logits_V, kRemoved);
  logits_V[best] = 0;
}

// Equal values at the boundary are all kept, as in transformers.
void Sampler::keep_top_k(std::span<float> logits_V) {
  const auto k = std::min(static_cast<size_t>(options_.top_k), logits_V.size());
  scratch_.assign(logits_V.begin(), logits_V.end());
  std::nth_element(scratch_.begin(), scratch_.begin() + (k - 1), scratch_.end(), std::greater<>());
  const float threshold = scratch_[k - 1];
  for (float& logit : logits_V) {
    if (logit < threshold) logit = kRemoved;
  }
}

// Removes tokens in ascending order of probability while the cumulative probability is ≤ 1 − top_p;
// always keeps the best one.
void Sampler::keep_top_p(std::span<float> logits_V) {
  const float largest = *std::ranges::max_element(logits_V);
  double total = 0;
  for (const float logit : logits_V) total += std::exp(static_cast<double>(logit) - largest);
  const double removable = (1 - options_.top_p) * total;
  // Tokens below this weight are always removed, so they need no sorting.
  const double floor = removable / static_cast<double>(logits_V.size());
  double cumulated = 0;
  order_.clear();
  for (size_t i = 0; i < logits_V.size(); ++i) {
    const double weight = std::exp(static_cast<double>(logits_V[i]) - largest);
    if (weight > floor || logits_V[i] == largest) {
      order_.push_back(static_cast<int>(i));
    } else {
      cumulated += weight;
      logits_V[i] = kRemoved;
    }
  }
  const auto logit_at = [&](TokenId id) { return logits_V[id]; };
  std::ranges::sort(order_, [&](int a, int b) {
    return logit_at(a) != logit_at(b) ? logit_at(a) < logit_at(b) : a < b;
  });
  for (size_t i = 0; i + 1 < order_.size(); ++i) {
    cumulated += std::exp(static_cast<double>(logit_at(order_[i])) - largest);
    if (cumulated > removable) break;
    logits_V[order_[i]] = kRemoved;
  }
}

TokenId Sampler::greedy(std::span<const float> logits_V, const SamplerRow& row) {
  REMATCH_CHECK(!logits_V.empty(), row.who_);
  const Extremes found = find_extremes(logits_V);
  const double largest_magnitude = std::max(std::abs(static_cast<double>(found.best)),
                                            std::abs(static_cast<double>(found.lowest)));
  if (static_cast<double>(found.best) - found.second < kNearTie * largest_magnitude)
    ++num_near_ties_;
  return static_cast<int>(std::ranges::find(logits_V, found.best) - logits_V.begin());
}

TokenId Sampler::draw(std::span<const float> logits_V, const SamplerRow& row) const {
  const uint64_t position_key = random_bits(row.key_, static_cast<uint64_t>(row.num_generated_));
  double best_score = -std::numeric_limits<double>::infinity();
  int best = -1;
  for (size_t i = 0; i < logits_V.size(); ++i) {
    if (logits_V[i] == kRemoved) continue;
    const double logit = logits_V[i];
    const uint64_t bits = random_bits(position_key, i);
    if (logit + noise_bound(bits) < best_score) continue;
    const double score = logit + gumbel_noise(bits);
    if (score > best_score) {
      best_score = score;
      best = static_cast<int>(i);
    }
  }
  REMATCH_CHECK(best >= 0, row.who_);
  return best;
}

}  // namespace rematch
