// Facts that `rematch init` derives from the sizes and names in the records.
#include "program/cli/init_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/flow/bins.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr int64_t kMostTokens = 1280;  ///< of an image
constexpr double kSmallestPx = 8;
constexpr double kShrunk = 0.9;  ///< of a side: more is the rounding to whole patches
constexpr size_t kMostClasses = 40;

int64_t tokens_of(const ImageSize& processed, const PatchOptions& patches) {
  const int64_t side = patches.side_multiple_px();
  return processed.width_px / side * (processed.height_px / side);
}

int64_t area_px(const ImageSize& size) { return int64_t{size.width_px} * size.height_px; }

/// Width and height of an object in an image of this size.
std::array<double, 2> extent_px(const Geometry& geometry, const ImageSize& size) {
  std::array<int, 2> low{kNumBins, kNumBins}, high{-1, -1};
  for (size_t i = 0; i < geometry.bins.size(); ++i) {
    low[i % 2] = std::min(low[i % 2], geometry.bins[i]);
    high[i % 2] = std::max(high[i % 2], geometry.bins[i]);
  }
  return {place_of(high[0] - low[0], size.width_px), place_of(high[1] - low[1], size.height_px)};
}

bool is_too_small(const std::array<double, 2>& extent) {
  return extent[0] < kSmallestPx || extent[1] < kSmallestPx;
}

/// Adds the objects that the smaller picture makes too small.
void add_small_objects(const Sample& sample, const ImageSize& before, const ImageSize& now,
                       ImageBudget& budget) {
  for (const SceneObject& object : sample.objects) {
    const std::array<double, 2> extent = extent_px(object.geometry, now);
    if (!is_too_small(extent) || is_too_small(extent_px(object.geometry, before))) continue;
    if (++budget.num_too_small == 1) {
      budget.example = fmt::format("{} \"{}\", {:.0f} x {:.0f} px", sample.where,
                                   shown_label(object.desc), extent[0], extent[1]);
    }
  }
}

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
      budget.num_objects += std::ssize(sample.objects);
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
      add_small_objects(sample, size, now, budget);
    }
  }
  return budget.num_larger > 0 ? std::optional(budget) : std::nullopt;
}

std::string image_budget_lines(const ImageBudget& budget) {
  const std::string unscaled = budget.is_of_processor
                                   ? "more than the model's processor takes"
                                   : fmt::format("{} tokens of a prompt", budget.largest_tokens);
  std::string text = fmt::format(
      "  # {} up to {} x {} px: {}. They are scaled down to {} tokens;\n"
      "  # a larger area shows more and costs more memory and time.\n",
      counted(budget.num_larger, "image has", "images have"), budget.largest.width_px,
      budget.largest.height_px, unscaled, budget.most_tokens);
  if (budget.num_too_small > 0)
    text += fmt::format(
        "  # {} of {} become narrower or lower than {:.0f} px, which a model hardly sees:\n"
        "  # {}. Raise the area, or cut the images into tiles.\n",
        budget.num_too_small, counted(budget.num_objects, "object"), kSmallestPx,
        printable(budget.example));
  return text + fmt::format("  max_pixels: {}\n", budget.max_pixels);
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
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  bool has_commas = false;
  for (const auto& [name, count] : classes) {
    names.push_back(name);
    has_commas = has_commas || name.find(',') != std::string::npos;
  }
  return {.text = fmt::format("{} Labels: {}.", prompt, join(names, has_commas ? "; " : ", "))};
}

}  // namespace rematch
