#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// `training.lr_scheduler_type`, `.lr_scheduler_kwargs` and what they depend on.
struct ScheduleOptions {
  std::string type = "linear";           ///< one of schedule_types()
  int64_t num_warmup_steps = 0;          ///< optimizer steps; see warmup_steps()
  int64_t num_training_steps = 0;        ///< optimizer steps of the whole run
  double learning_rate = 0;              ///< `training.learning_rate`: what min_lr is a share of
  std::optional<double> num_cycles;      ///< waves; default 0.5, half a cosine
  std::optional<double> min_lr;          ///< exactly one of min_lr and min_lr_rate for the two cosines with a floor
  std::optional<double> min_lr_rate;     ///< floor as a share of the learning rate
  std::optional<double> warmup_lr_rate;  ///< `cosine_warmup_with_min_lr`: where the warm-up starts, as a share
};

/// Learning-rate factor by optimizer step, as transformers defines it (float64; the same for every group).
/// @source transformers optimization.py: get_scheduler and the lambdas behind it
class Schedule {
 public:
  /// @throws UserError (config) for an unknown type, a keyword that the type does not take, or none or both of min_lr and min_lr_rate
  explicit Schedule(const ScheduleOptions& options);

  /// What multiplies every group's learning rate in the update after `num_done_steps` finished ones (0 for the first update).
  double factor(int64_t num_done_steps) const;

 private:
  ScheduleOptions options_;
  double min_lr_rate_ = 0;
};

/// Names a user may write.
const std::vector<std::string>& schedule_types();

/// `training.warmup_steps` when it is positive, else `warmup_ratio` of the run, rounded up.
int64_t num_warmup_steps(int64_t warmup_steps, double warmup_ratio, int64_t num_training_steps);

}  // namespace rematch
