#include "program/cli/init_schedule.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr int64_t kFewestSteps = 200;
constexpr int64_t kFewestEpochs = 3;
constexpr int64_t kMostEpochSaves = 10;  ///< more epochs than this: saves by steps
constexpr int64_t kSaveSteps = 50;

}  // namespace

InitSchedule init_schedule(int64_t num_samples) {
  InitSchedule schedule;
  while (schedule.batch_size > 4 && schedule.batch_size > num_samples) schedule.batch_size /= 2;
  const int64_t steps_per_epoch = (num_samples + schedule.batch_size - 1) / schedule.batch_size;
  schedule.epochs = std::max(kFewestEpochs, (kFewestSteps + steps_per_epoch - 1) / steps_per_epoch);
  schedule.steps = schedule.epochs * steps_per_epoch;
  if (schedule.epochs > kMostEpochSaves) schedule.save_steps = kSaveSteps;
  return schedule;
}

std::string schedule_lines(const InitSchedule& schedule, int64_t num_samples, bool has_val,
                           bool is_stage_1) {
  const std::string reason = schedule.epochs > kFewestEpochs
                                 ? fmt::format("fewer than {} teach too little", kFewestSteps)
                                 : fmt::format("{} epochs at least", kFewestEpochs);
  std::string text = fmt::format(
      "  # {} of {} in steps of {}: {} optimizer steps; {}.\n"
      "  num_train_epochs: {}\n"
      "  effective_batch_size: {:<13}# samples of an optimizer step\n",
      counted(schedule.epochs, "epoch"), counted(num_samples, "sample"), schedule.batch_size,
      schedule.steps, reason, schedule.epochs, schedule.batch_size);
  text +=
      "  per_device_train_batch_size: 4     # of these together in memory; lower it when memory "
      "runs out\n"
      "  # learning_rate: left out, so it is 1.0e-5, and 1.0e-4 with an adapter\n"
      "  lr_scheduler_type: cosine\n  warmup_ratio: 0.03\n  logging_steps: 5\n";
  const char* when = schedule.save_steps > 0 ? "steps" : "epoch";
  text += fmt::format("  save_strategy: {}\n", when);
  if (schedule.save_steps > 0) text += fmt::format("  save_steps: {}\n", schedule.save_steps);
  text += fmt::format("  save_total_limit: 3\n  eval_strategy: {}\n", has_val ? when : "\"no\"");
  if (!has_val) return text;
  return text +
         (is_stage_1
              ? "  # metric_for_best_model: eval_rollout_f1_labels    # else the lowest eval_loss\n"
              : "  eval_on_start: true                # the health line compares with it\n");
}

}  // namespace rematch
