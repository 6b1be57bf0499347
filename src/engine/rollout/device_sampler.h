#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "engine/rollout/sampler.h"

namespace rematch {

/// Sampler for logits on a device: the same processors in the same order and the same keyed noise,
/// computed there, so that 16 bytes a sequence come to the host instead of its logits. Rounding may
/// differ from Sampler's in the last bits.
class DeviceSampler {
 public:
  explicit DeviceSampler(const GenerateOptions& options) : options_(options) {}

  /// Next tokens of `rows`; waits once for the device. Uploads the keys of the rows and, with a
  /// repetition penalty, the ids that they have seen.
  /// @param logits_SV  [rows, V], any floating dtype; not changed
  /// @throws UserError (data) naming the sample when a logit or log-probability is not finite
  std::vector<ChosenToken> next(const at::Tensor& logits_SV, std::span<SamplerRow* const> rows);

  /// As Sampler::num_near_ties().
  int64_t num_near_ties() const { return num_near_ties_; }

 private:
  at::Tensor penalised(const at::Tensor& logits_SV, std::span<SamplerRow* const> rows) const;
  at::Tensor warped(at::Tensor logits_SV) const;
  at::Tensor draw(const at::Tensor& logits_SV, std::span<SamplerRow* const> rows);

  GenerateOptions options_;
  at::Tensor counters_V_;  ///< mixed token ids; made once
  int64_t num_near_ties_ = 0;
};

}  // namespace rematch
