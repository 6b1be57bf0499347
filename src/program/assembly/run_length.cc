#include "program/assembly/run_length.h"

#include <fmt/core.h>

#include <vector>

#include "base/terminal_text.h"
#include "learn/data/windows.h"
#include "learn/evaluate/advice.h"
#include "learn/train/cadence.h"
#include "learn/train/rollout_buffer.h"

namespace rematch {
namespace {

constexpr int64_t kFewSteps = 100;  ///< fewer steps hardly change weights at usual learning rates

}  // namespace

RunLength run_length(const Settings& settings, int64_t num_samples, int num_ranks) {
  WindowOptions options{.num_samples = num_samples, .batches = settings.batches};
  // The samples of a window depend only on this product.
  options.batches.gradient_accumulation_steps *= num_ranks;
  WindowStream stream(options);
  const int64_t num_windows = stream.windows_in_epoch(0);
  const RolloutBuffer buffer(settings.rollout_buffer,
                             settings.is_stage_2() ? settings.target.rollout_share : 1);
  const int64_t epoch_steps = buffer.epoch_steps(num_windows, stream.ends_partial(0));
  std::vector<int64_t> seen{0};  // samples seen after N windows of an epoch
  for (int64_t window = 0; window < num_windows; ++window)
    seen.push_back(seen.back() + std::ssize(stream.next().samples()));
  const Cadence cadence(settings.cadence, [=](int64_t) { return epoch_steps; });
  RunLength length{.steps = cadence.total_steps(),
                   .is_bound = settings.pack.enabled && !settings.is_stage_2()};
  const int64_t per_window = settings.rollout_buffer.steps_per_window();
  const int64_t rest = length.steps % epoch_steps;
  length.samples_seen =
      length.steps / epoch_steps * seen.back() + seen[(rest + per_window - 1) / per_window];
  return length;
}

std::string length_text(const RunLength& length) {
  return fmt::format("{}{} ({} seen)", length.is_bound ? "at most " : "",
                     counted(length.steps, "optimizer step"),
                     counted(length.samples_seen, "sample"));
}

std::string warmup_warning(const ScheduleSettings& schedule, int64_t steps) {
  if (schedule.warmup_steps <= steps || schedule.type == ScheduleType::kConstant) return "";
  return fmt::format(advice::kLongWarmup, schedule.warmup_steps, counted(steps, "optimizer step"));
}

std::string short_run_warning(const RunLength& length, const Settings& settings) {
  if (length.steps >= kFewSteps) return "";
  return fmt::format(
      advice::kShortRun, length_text(length),
      settings.cadence.max_steps > 0 ? "training.max_steps" : "training.num_train_epochs");
}

}  // namespace rematch
