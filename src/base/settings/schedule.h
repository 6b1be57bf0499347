#pragma once
#include <cstdint>
#include <optional>

#include "base/enum_names.h"

namespace rematch {

/// `training.lr_scheduler_type`: schedules with their names in transformers.
enum class ScheduleType {
  kConstant,
  kConstantWithWarmup,
  kLinear,
  kCosine,
  kCosineWithMinLr,
  kCosineWarmupWithMinLr
};
constexpr auto names_of(ScheduleType) {
  using enum ScheduleType;
  return std::to_array<EnumName<ScheduleType>>(
      {{kConstant, "constant"},
       {kConstantWithWarmup, "constant_with_warmup"},
       {kLinear, "linear"},
       {kCosine, "cosine"},
       {kCosineWithMinLr, "cosine_with_min_lr"},
       {kCosineWarmupWithMinLr, "cosine_warmup_with_min_lr"}});
}

/// `training.lr_scheduler_type`, `.lr_scheduler_kwargs` and the warm-up.
struct ScheduleSettings {
  ScheduleType type = ScheduleType::kCosine;
  double warmup_ratio = 0;           ///< share of all optimizer steps; used if warmup_steps is 0
  int64_t warmup_steps = 0;          ///< optimizer steps
  std::optional<double> num_cycles;  ///< periods; default 0.5, half a cosine
  /// final learning rate; the two `…_min_lr` schedules need either this or min_lr_rate
  std::optional<double> min_lr;
  std::optional<double> min_lr_rate;  ///< min_lr as a fraction of the learning rate
  /// kCosineWarmupWithMinLr: start of the warm-up, as a fraction of the learning rate
  std::optional<double> warmup_lr_rate;

  bool operator==(const ScheduleSettings&) const = default;
};

}  // namespace rematch
