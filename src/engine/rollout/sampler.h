#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/flow/rollout.h"
#include "engine/rollout/engine.h"

namespace rematch {

/// Sampler state of one sequence: its random key and the ids for the repetition penalty.
class SamplerRow {
 public:
  /// @param prompt      identifies the sequence (epoch, sample_id, where); its ids are penalised
  /// too
  /// @param vocab_size  larger ids cannot be generated and are ignored
  SamplerRow(const Prompt& prompt, const GenerateOptions& options, int64_t vocab_size);

  int64_t num_generated() const { return num_generated_; }

 private:
  friend class Sampler;
  friend class DeviceSampler;
  void remember(TokenId token_id);

  uint64_t key_ = 0;
  int64_t num_generated_ = 0;
  bool penalises_ = false;
  std::vector<bool> seen_;         ///< by id, only kept when there is a penalty
  std::vector<TokenId> seen_ids_;  ///< the set bits of seen_, each once
  std::string who_;                ///< sample and place, for errors
};

/// A chosen token, and the natural logarithm of its probability: from the softmax of the raw
/// logits, before penalty, temperature and truncation (BEHAVIOUR 20.1).
struct ChosenToken {
  TokenId token_id = 0;
  float logprob = 0;
};

/// Chooses the next token of a sequence from its logits (BEHAVIOUR 4.1, 4.7). Torch-free; works in
/// place on float32 logits.
///
/// Order and arithmetic are those of transformers' processors: repetition penalty, then (only when
/// sampling) temperature, top_k, top_p. Greedy takes the first of equal maxima. Sampling takes
/// argmax(logit + Gumbel noise): the same distribution as inverting the cumulative sum, but
/// rounding differences between batch sizes matter only if two perturbed logits nearly tie. Noise
/// is keyed by (seed, epoch, sample_id, position, token id), so a sample gives the same tokens in
/// any batch. One sampler serves any number of rows; not thread-safe.
class Sampler {
 public:
  /// @throws UserError (config) for options out of range, see check_sampling_options()
  explicit Sampler(const GenerateOptions& options);

  /// Next token of `row`; `logits_V` is overwritten.
  /// @throws UserError (data) naming the sample when a logit or the log-probability is not finite.
  /// Cost: O(V), with top_p O(V + k log k) for the k tokens that can matter.
  ChosenToken next(std::span<float> logits_V, SamplerRow& row);

  /// Applies penalty, temperature, top_k and top_p to logits; removed entries become -inf. For
  /// tests.
  void process(std::span<float> logits_V, const SamplerRow& row);

  /// Number of greedy choices so far in which the two best logits differed by less than 1e-5 of the
  /// largest magnitude. Only there may another implementation choose differently.
  int64_t num_near_ties() const { return num_near_ties_; }

 private:
  void warp(std::span<float> logits_V, const SamplerRow& row);
  TokenId greedy(std::span<const float> logits_V, const SamplerRow& row);
  TokenId draw(std::span<const float> logits_V, const SamplerRow& row) const;
  void apply_temperature(std::span<float> logits_V) const;
  void keep_top_k(std::span<float> logits_V);
  void keep_top_p(std::span<float> logits_V);

  GenerateOptions options_;
  std::vector<float> scratch_, raw_;
  std::vector<int> order_;
  int64_t num_near_ties_ = 0;
};

/// Checks ranges: temperature ≥ 0, 0 ≤ top_p ≤ 1, top_k ≥ 0, repetition_penalty > 0, max_new_tokens
/// ≥ 1, batch_size ≥ 1.
/// @throws UserError (config) naming the key
void check_sampling_options(const GenerateOptions& options);

}  // namespace rematch
