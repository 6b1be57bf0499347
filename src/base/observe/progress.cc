#include "base/observe/progress.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/observe/columns.h"

namespace rematch {
namespace {

constexpr size_t kMaxCells = 24, kMinCells = 10, kFrame = 3;  // " ▕▏"
constexpr size_t kTimeWidth = 12;                             // "  59:59 left"

int64_t whole_seconds(double seconds) {
  return static_cast<int64_t>(std::clamp(seconds, 0.0, 359999.0) + 0.5);
}

/// 75 → "1:15", 3675 → "1:01:15".
std::string duration_text(double seconds) {
  const int64_t whole = whole_seconds(seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// A duration in at most five columns: "12:10", "1h12".
std::string short_duration(double seconds) {
  const int64_t whole = whole_seconds(seconds);
  return whole < 3600 ? duration_text(seconds)
                      : fmt::format("{}h{:02}", whole / 3600, whole / 60 % 60);
}

std::string field_text(const ProgressField& field) {
  const std::string value = field.value.empty() ? "–" : field.value;
  if (!field.is_unit) return "  " + field.name + " " + pad(value, field.width);
  const size_t width = display_width(value);
  return "  " + std::string(field.width - std::min(field.width, width), ' ') + value + " " +
         field.name;
}

double part_done(const Progress& state) {
  if (state.total <= 0) return 0;
  return std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

}  // namespace

ProgressLayout::ProgressLayout(const Progress& first, size_t width, bool is_ascii)
    : width_(width),
      is_ascii_(is_ascii),
      count_width_(2 * fmt::format("{}", first.total).size() + 1) {
  size_t used = display_width(first.phase) + 1 + count_width_ + kTimeWidth;
  if (used + kFrame + kMinCells <= width) {
    bar_cells_ = kMinCells;
    used += kFrame + kMinCells;
  }
  for (const bool is_extra : {false, true}) {
    for (const ProgressField& field : first.fields) {
      const size_t columns =
          display_width(field_text({field.name, "", field.width, field.is_unit}));
      if (field.is_extra != is_extra || used + columns > width) continue;
      shown_.push_back(field.name);
      used += columns;
    }
  }
  if (bar_cells_ > 0) bar_cells_ += std::min(width - used, kMaxCells - kMinCells);
}

std::string ProgressLayout::bar(double part) const {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(part * static_cast<double>(8 * bar_cells_));
  const size_t full = eighths / 8;
  if (is_ascii_) return " [" + std::string(full, '#') + std::string(bar_cells_ - full, '.') + "]";
  std::string cells;
  for (size_t i = 0; i < full; ++i) cells += "█";
  return " ▕" + pad(cells + kEighths[eighths % 8], bar_cells_) + "▏";
}

std::string ProgressLayout::line(const Progress& state, double elapsed_s, double left_s) const {
  const std::string count = fmt::format("{}/{}", state.done, state.total);
  std::string text = state.phase + (bar_cells_ > 0 ? bar(part_done(state)) : "") + " " +
                     std::string(count_width_ - std::min(count_width_, count.size()), ' ') + count;
  for (const ProgressField& field : state.fields) {
    if (contains(shown_, field.name)) text += field_text(field);
  }
  text += "  " + (left_s < 0 ? short_duration(elapsed_s) : short_duration(left_s) + " left");
  return clip(text, width_);
}

std::string plain_progress(const Progress& state, double elapsed_s, double left_s) {
  std::string text = fmt::format("{} {}/{}", state.phase, state.done, state.total);
  for (const ProgressField& field : state.fields) {
    if (field.value.empty()) continue;
    text +=
        "  " + (field.is_unit ? field.value + " " + field.name : field.name + " " + field.value);
  }
  text += "  " + duration_text(elapsed_s);
  return left_s < 0 ? text : fmt::format("{}, {} left", text, duration_text(left_s));
}

}  // namespace rematch
