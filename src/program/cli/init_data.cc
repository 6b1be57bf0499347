// Facts and schedule that `rematch init` derives from the records.
#include "program/cli/init_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr int64_t kMostTokens = 1280;  ///< of an image
constexpr double kShrunk = 0.9;        ///< of a side: more is the rounding to whole patches
constexpr size_t kMostClasses = 40;

constexpr int64_t kFewestSteps = 200;
constexpr int64_t kFewestEpochs = 3;
constexpr int64_t kMostEpochSaves = 10;  ///< more epochs than this: saves by steps
constexpr int64_t kSaveSteps = 50;

int64_t tokens_of(const ImageSize& processed, const PatchOptions& patches) {
  const int64_t side = patches.side_multiple_px();
  return processed.width_px / side * (processed.height_px / side);
}

int64_t area_px(const ImageSize& size) { return int64_t{size.width_px} * size.height_px; }

}  // namespace

std::optional<ImageBudget> find_image_budget(const std::vector<Dataset>& data,
                                             const PatchOptions& patches) {
  if (!patches.do_resize) return std::nullopt;
  const int64_t area = int64_t{patches.side_multiple_px()} * patches.side_multiple_px();
  PatchOptions limited = patches;
  limited.max_pixels = std::min(patches.max_pixels, kMostTokens * area);
  ImageBudget budget{.max_pixels = limited.max_pixels,
                     .most_tokens = limited.max_pixels / area,
                     .is_of_processor = limited.max_pixels == patches.max_pixels};
  for (const Dataset& records : data) {
    for (const Sample& sample : records.samples()) {
      const ImageSize size{.width_px = sample.width_px, .height_px = sample.height_px};
      const ImageSize now = processed_size(size, limited, sample.where);
      const int64_t tokens = tokens_of(processed_size(size, patches, sample.where), patches);
      const bool is_smaller = now.width_px < size.width_px * kShrunk;
      if (budget.is_of_processor ? !is_smaller : tokens <= kMostTokens) continue;
      ++budget.num_larger;
      if (area_px(budget.largest) < area_px(size)) {
        budget.largest = size;
        budget.largest_tokens = tokens;
      }
    }
  }
  return budget.num_larger > 0 ? std::optional(budget) : std::nullopt;
}

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

ClassPrompt class_list_prompt(const Dataset& train, const std::string& prompt) {
  std::map<std::string, int64_t> counts;
  int64_t num_objects = 0;
  for (const Sample& sample : train.samples()) {
    if (!sample.prompt.empty()) return {};
    for (const SceneObject& object : sample.objects) {
      ++counts[object.desc];
      ++num_objects;
    }
  }
  if (counts.empty() || num_objects < 2 * std::ssize(counts)) return {};
  if (counts.size() > kMostClasses)
    return {
        .note = fmt::format(
            "{} classes are too many for the prompt: the model must learn the names, or `rematch "
            "data from-… --prompt-classes` asks each image for some of them",
            counts.size())};
  std::vector<std::pair<std::string, int64_t>> classes(counts.begin(), counts.end());
  std::ranges::stable_sort(classes, std::greater(), [](const auto& row) { return row.second; });
  Strings names;
  bool has_commas = false;
  for (const auto& [name, count] : classes) {
    names.push_back(name);
    has_commas = has_commas || name.find(',') != std::string::npos;
  }
  return {.text = fmt::format("{} Labels: {}.", prompt, join(names, has_commas ? "; " : ", "))};
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
