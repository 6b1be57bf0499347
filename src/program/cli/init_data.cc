// Facts and schedule that `rematch init` derives from the records.
#include "program/cli/init_data.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr int64_t kFewestSteps = 200;
constexpr int64_t kFewestEpochs = 3;
constexpr int64_t kMostEpochSaves = 10;  ///< more epochs than this: saves by steps
constexpr int64_t kSaveSteps = 50;

}  // namespace

std::string image_budget_lines(const ImageBudget& budget) {
  const std::string unscaled = budget.is_of_processor
                                   ? "more than the model's processor takes"
                                   : fmt::format("{} tokens of a prompt", budget.largest_tokens);
  return fmt::format(
      "  # {} up to {} x {} px: {}. They are scaled down to {} tokens;\n"
      "  # a larger area shows more, small objects above all, and costs more memory and time.\n"
      "  max_pixels: {}\n",
      counted(budget.num_larger, "image has", "images have"), budget.largest.width_px,
      budget.largest.height_px, unscaled, budget.most_tokens, budget.max_pixels);
}

std::string schedule_lines(int64_t num_samples, bool has_val, bool is_stage_1) {
  int64_t batch_size = 16;  // steps of few samples where there are few
  while (batch_size > 4 && batch_size > num_samples) batch_size /= 2;
  const int64_t epoch_steps = (num_samples + batch_size - 1) / batch_size;
  const int64_t epochs = std::max(kFewestEpochs, (kFewestSteps + epoch_steps - 1) / epoch_steps);
  const bool saves_by_steps = epochs > kMostEpochSaves;
  std::string text = fmt::format(
      "  # {} of {} in steps of {}: {} optimizer steps.\n"
      "  num_train_epochs: {}\n"
      "  effective_batch_size: {:<13}# samples of an optimizer step\n",
      counted(epochs, "epoch"), counted(num_samples, "sample"), batch_size, epochs * epoch_steps,
      epochs, batch_size);
  text +=
      "  per_device_train_batch_size: 4     # of these in memory; lower it when memory "
      "runs out\n"
      "  # learning_rate: left out, so it is 1.0e-5, and 1.0e-4 with an adapter\n"
      "  lr_scheduler_type: cosine\n  warmup_ratio: 0.03\n  logging_steps: 5\n";
  const char* when = saves_by_steps ? "steps" : "epoch";
  text += fmt::format("  save_strategy: {}\n", when);
  if (saves_by_steps) text += fmt::format("  save_steps: {}\n", kSaveSteps);
  text += fmt::format("  save_total_limit: 3\n  eval_strategy: {}\n", has_val ? when : "\"no\"");
  if (!has_val) return text;
  return text +
         (is_stage_1
              ? "  # metric_for_best_model: eval_rollout_f1_labels    # else the lowest eval_loss\n"
              : "  eval_on_start: true                # the health line compares with it\n");
}

}  // namespace rematch
