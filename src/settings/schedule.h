#pragma once
#include <cstdint>
#include <optional>

#include "base/enum_names.h"

namespace rematch {

/// `training.lr_scheduler_type`: schedules by their names in transformers.
enum class ScheduleType {
  kConstant,
  kConstantWithWarmup,
  kLinear,
  kCosine,
  kCosineWithMinLr,
  kCosineWarmupWithMinLr
};
inline constexpr EnumName<ScheduleType> kScheduleTypes[] = {
    {ScheduleType::kConstant, "constant"},
    {ScheduleType::kConstantWithWarmup, "constant_with_warmup"},
    {ScheduleType::kLinear, "linear"},
    {ScheduleType::kCosine, "cosine"},
    {ScheduleType::kCosineWithMinLr, "cosine_with_min_lr"},
    {ScheduleType::kCosineWarmupWithMinLr, "cosine_warmup_with_min_lr"}};
constexpr std::span<const EnumName<ScheduleType>> names_of(ScheduleType) { return kScheduleTypes; }

/// `training.lr_scheduler_type`, `.lr_scheduler_kwargs` and the warm-up.
struct ScheduleSettings {
  ScheduleType type = ScheduleType::kCosine;
  double warmup_ratio = 0;           ///< of all optimizer steps; used when warmup_steps is 0
  int64_t warmup_steps = 0;          ///< optimizer steps
  std::optional<double> num_cycles;  ///< periods; default 0.5, half a cosine
  /// exactly one of min_lr and min_lr_rate for the two cosines with a floor
  std::optional<double> min_lr;
  std::optional<double> min_lr_rate;  ///< floor as a fraction of the learning rate
  /// kCosineWarmupWithMinLr: start of the warm-up, as a fraction
  std::optional<double> warmup_lr_rate;

  bool operator==(const ScheduleSettings&) const = default;
};

}  // namespace rematch
