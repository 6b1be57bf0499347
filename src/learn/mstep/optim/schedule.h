#pragma once
#include <cstdint>

#include "base/settings/schedule.h"

namespace rematch {

/// Learning-rate factor by optimizer step, as transformers defines it (float64; the same for every
/// group).
/// @source transformers optimization.py: get_scheduler and its lambdas
class Schedule {
 public:
  /// @param learning_rate       min_lr is relative to it
  /// @param num_training_steps  optimizer steps of the whole run
  /// @param settings  checked by the configuration: a type has its own keywords only
  /// @throws UserError (config) for a min_lr without a positive learning rate
  explicit Schedule(const ScheduleSettings& settings, double learning_rate = 0,
                    int64_t num_training_steps = 0);

  /// Factor of every learning rate in the update that follows `num_done_steps` finished ones (0 for
  /// the first update).
  double factor(int64_t num_done_steps) const;

 private:
  ScheduleSettings settings_;
  int64_t num_training_steps_;
  int64_t num_warmup_steps_;
  double min_lr_rate_ = 0;
};

/// `training.warmup_steps` if it is positive, else `warmup_ratio` of the run, rounded up.
int64_t num_warmup_steps(int64_t warmup_steps, double warmup_ratio, int64_t num_training_steps);

}  // namespace rematch
