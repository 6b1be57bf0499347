#pragma once
#include <cstdint>

#include "base/enum_names.h"

namespace rematch {

/// Times of a recurring event (`eval_strategy`, `save_strategy`).
enum class When { kSteps, kEpoch, kBest, kNever };
constexpr auto names_of(When) {
  using enum When;
  return std::to_array<EnumName<When>>(
      {{kSteps, "steps"}, {kEpoch, "epoch"}, {kBest, "best"}, {kNever, "no"}});
}

/// Length of training and intervals of logging, evaluation and saving, in optimizer steps
/// (BEHAVIOUR 10.3).
struct CadenceSettings {
  int64_t max_steps = -1;  ///< > 0 overrides num_train_epochs
  double num_train_epochs = 3;
  int64_t logging_steps = 5;
  bool logging_first_step = true;
  When eval_when = When::kNever;  ///< kSteps, kEpoch or kNever
  int64_t eval_steps = 500;
  When save_when = When::kSteps;  ///< kBest: after every new best evaluation
  int64_t save_steps = 500;
  int64_t save_delay_steps = 0;  ///< no checkpoint before this step
  double save_delay_epochs = 0;
  bool save_last_epoch = true;  ///< writes a checkpoint at the end, even with kNever

  bool operator==(const CadenceSettings&) const = default;
};

}  // namespace rematch
