#include "learn/train/train_bar.h"

#include <fmt/core.h>

#include <cmath>

#include "base/host_memory.h"

namespace rematch {

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 0.001) return fmt::format("{:.0e}", value);
  if (size < 0.1) return fmt::format("{:.3f}", value);
  if (size < 10) return fmt::format("{:.2f}", value);
  if (size < 100) return fmt::format("{:.1f}", value);
  return size < 99999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.0e}", value);
}

std::string short_rate(double value) { return fmt::format("{:.1e}", value); }

std::string short_share(double value) {
  const std::string text = fmt::format("{:.2f}", value);
  return text.starts_with("0.") ? text.substr(1) : text.substr(0, 3);
}

TrainBar::TrainBar(bool rolls_out, std::string memory_name, double gate)
    : rolls_out_(rolls_out), memory_name_(std::move(memory_name)) {
  const std::string text = fmt::format("{:.2g}", gate);
  f1_name_ = "F1@" + (text.starts_with("0.") ? text.substr(1) : text);
}

Progress TrainBar::state(int64_t step, int64_t num_steps, const MetricValues& values,
                         double tokens_per_s, int64_t memory_bytes) {
  for (const auto& [name, value] : values) last_[name] = value;
  const auto shown = [this](const char* name, std::string (*text)(double)) {
    const auto found = last_.find(name);
    return found == last_.end() ? std::string() : text(found->second);
  };
  Progress bar{.phase = "train", .done = step, .total = num_steps};
  bar.fields.push_back({.name = "loss", .value = shown("loss", short_number)});
  if (rolls_out_) {
    bar.fields.push_back({.name = f1_name_, .value = shown("rollout/f1", short_share), .width = 3});
    bar.fields.push_back({.name = "label " + f1_name_,
                          .value = shown("rollout/f1_labels", short_share),
                          .width = 3,
                          .is_extra = true});
  }
  bar.fields.push_back(
      {.name = "s/step", .value = shown("time/step_s", short_number), .is_unit = true});
  bar.fields.push_back({.name = "tok/s",
                        .value = tokens_per_s > 0 ? short_number(tokens_per_s) : "",
                        .is_unit = true,
                        .is_extra = true});
  bar.fields.push_back(
      {.name = memory_name_,
       .value = short_number(static_cast<double>(memory_bytes) / kBytesPerGib) + " GiB",
       .width = 9,
       .is_extra = true});
  bar.fields.push_back(
      {.name = "lr", .value = shown("learning_rate", short_rate), .is_extra = true});
  return bar;
}

}  // namespace rematch
