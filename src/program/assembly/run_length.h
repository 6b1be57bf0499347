#pragma once
#include <cstdint>
#include <string>

#include "base/settings/settings.h"

namespace rematch {

/// Length of a run. With packed rows in stage 1 (several samples each) an upper bound.
struct RunLength {
  int64_t steps = 0;         ///< optimizer steps
  int64_t samples_seen = 0;  ///< counted once per use
  bool is_bound = false;
};

/// Counts the steps without a model. Cost: linear in the samples.
/// @param num_samples  of train_jsonl, ≥ 1
/// @throws UserError (config) when an epoch has no micro-batch
RunLength run_length(const Settings& settings, int64_t num_samples, int num_ranks);

/// "3 optimizer steps (18 samples seen)".
std::string length_text(const RunLength& length);

/// A warning when `training.warmup_steps` is longer than a run of `steps`; "" otherwise.
std::string warmup_warning(const ScheduleSettings& schedule, int64_t steps);

/// A warning when a run is too short to learn from; "" otherwise.
std::string short_run_warning(const RunLength& length, const Settings& settings);

}  // namespace rematch
