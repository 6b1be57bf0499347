#include "learn/mstep/optim/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace rematch {
namespace {

constexpr double kDefaultNumCycles = 0.5;

// Floor of a cosine schedule, as a share of the learning rate.
double floor_rate(const ScheduleSettings& settings, double learning_rate) {
  if (settings.min_lr_rate || !settings.min_lr) return settings.min_lr_rate.value_or(0);
  if (learning_rate > 0) return *settings.min_lr / learning_rate;
  throw config_error({.error = "min_lr needs a positive learning rate",
                      .where = "training.lr_scheduler_kwargs",
                      .what = fmt::format("learning_rate {}", learning_rate),
                      .fix = "set training.learning_rate, or use min_lr_rate"});
}

double cosine(double progress, double num_cycles) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles * 2.0 * progress));
}

}  // namespace

int64_t num_warmup_steps(int64_t warmup_steps, double warmup_ratio, int64_t num_training_steps) {
  if (warmup_steps > 0) return warmup_steps;
  return static_cast<int64_t>(std::ceil(num_training_steps * warmup_ratio));
}

Schedule::Schedule(const ScheduleSettings& settings, double learning_rate,
                   int64_t num_training_steps)
    : settings_(settings),
      num_training_steps_(num_training_steps),
      num_warmup_steps_(
          num_warmup_steps(settings.warmup_steps, settings.warmup_ratio, num_training_steps)),
      min_lr_rate_(floor_rate(settings, learning_rate)) {}

double Schedule::factor(int64_t num_done_steps) const {
  const double step = num_done_steps;
  const double warmup = num_warmup_steps_;
  const double total = num_training_steps_;
  const double num_cycles = settings_.num_cycles.value_or(kDefaultNumCycles);
  const bool is_warming_up = num_done_steps < num_warmup_steps_;

  // This schedule is one step ahead, so that its last step reaches the floor.
  const bool is_ahead = settings_.type == ScheduleType::kCosineWarmupWithMinLr;

  if (settings_.type == ScheduleType::kConstant) return 1.0;
  if (is_warming_up && is_ahead && settings_.warmup_lr_rate) {
    return *settings_.warmup_lr_rate +
           (1.0 - *settings_.warmup_lr_rate) * step / std::max(1.0, warmup - 1.0);
  }
  if (is_warming_up) return (step + (is_ahead ? 1.0 : 0.0)) / std::max(1.0, warmup);
  if (settings_.type == ScheduleType::kConstantWithWarmup) return 1.0;
  if (settings_.type == ScheduleType::kLinear)
    return std::max(0.0, (total - step) / std::max(1.0, total - warmup));
  const double progress = (step - warmup + (is_ahead ? 1.0 : 0.0)) / std::max(1.0, total - warmup);
  return std::max(0.0, cosine(progress, num_cycles) * (1.0 - min_lr_rate_) + min_lr_rate_);
}

}  // namespace rematch
