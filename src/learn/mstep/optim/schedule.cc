#include "learn/mstep/optim/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr double kDefaultNumCycles = 0.5;

// The keywords that each schedule accepts.
struct KeywordsRow {
  ScheduleType type;
  bool ignores_keywords;  ///< as transformers silently does
  std::vector<std::string> keywords;
};

const KeywordsRow& keywords_row(ScheduleType type) {
  static const std::vector<KeywordsRow> kRows = {
      {ScheduleType::kConstant, true, {}},
      {ScheduleType::kConstantWithWarmup, true, {}},
      {ScheduleType::kLinear, false, {}},
      {ScheduleType::kCosine, false, {"num_cycles"}},
      {ScheduleType::kCosineWithMinLr, false, {"num_cycles", "min_lr", "min_lr_rate"}},
      {ScheduleType::kCosineWarmupWithMinLr,
       false,
       {"num_cycles", "min_lr", "min_lr_rate", "warmup_lr_rate"}},
  };
  return *std::find_if(kRows.begin(), kRows.end(),
                       [type](const KeywordsRow& row) { return row.type == type; });
}

UserError keyword_error(const std::string& error, const std::string& what, const std::string& fix) {
  return UserError(
      ErrorKind::kConfig,
      {.error = error, .where = "training.lr_scheduler_kwargs", .what = what, .fix = fix});
}

void check_keywords(const KeywordsRow& row, const ScheduleSettings& settings) {
  if (row.ignores_keywords) return;
  const std::pair<const char*, bool> given[] = {
      {"num_cycles", settings.num_cycles.has_value()},
      {"min_lr", settings.min_lr.has_value()},
      {"min_lr_rate", settings.min_lr_rate.has_value()},
      {"warmup_lr_rate", settings.warmup_lr_rate.has_value()}};
  for (const auto& [keyword, is_given] : given) {
    const bool is_known =
        std::find(row.keywords.begin(), row.keywords.end(), keyword) != row.keywords.end();
    if (!is_given || is_known) continue;
    throw keyword_error(fmt::format("{} takes no {}", name_of(row.type), keyword),
                        row.keywords.empty() ? "it takes no arguments"
                                             : fmt::format("it takes {}", join(row.keywords, ", ")),
                        fmt::format("remove {} or choose another lr_scheduler_type", keyword));
  }
}

// Floor of the cosine schedules with min_lr, as a share of the learning rate.
double floor_rate(const ScheduleSettings& settings, double learning_rate) {
  if (settings.min_lr && settings.min_lr_rate) {
    throw keyword_error(
        "both min_lr and min_lr_rate are given",
        fmt::format("min_lr {}, min_lr_rate {}", *settings.min_lr, *settings.min_lr_rate),
        "keep one of them");
  }
  if (settings.min_lr_rate) return *settings.min_lr_rate;
  if (!settings.min_lr) {
    throw keyword_error(fmt::format("{} needs min_lr or min_lr_rate", name_of(settings.type)),
                        "neither is given",
                        "add one of them, e.g. lr_scheduler_kwargs: {min_lr_rate: 0.1}");
  }
  if (!(learning_rate > 0)) {
    throw keyword_error("min_lr needs a positive learning rate",
                        fmt::format("learning_rate {}", learning_rate),
                        "set training.learning_rate, or use min_lr_rate");
  }
  return *settings.min_lr / learning_rate;
}

double cosine(double progress, double num_cycles) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles * 2.0 * progress));
}

}  // namespace

int64_t num_warmup_steps(int64_t warmup_steps, double warmup_ratio, int64_t num_training_steps) {
  if (warmup_steps > 0) return warmup_steps;
  return static_cast<int64_t>(std::ceil(static_cast<double>(num_training_steps) * warmup_ratio));
}

Schedule::Schedule(const ScheduleSettings& settings, double learning_rate,
                   int64_t num_training_steps)
    : settings_(settings),
      num_training_steps_(num_training_steps),
      num_warmup_steps_(
          num_warmup_steps(settings.warmup_steps, settings.warmup_ratio, num_training_steps)) {
  const KeywordsRow& row = keywords_row(settings_.type);
  check_keywords(row, settings_);
  const bool has_floor =
      std::find(row.keywords.begin(), row.keywords.end(), "min_lr") != row.keywords.end();
  if (has_floor) min_lr_rate_ = floor_rate(settings_, learning_rate);
}

double Schedule::factor(int64_t num_done_steps) const {
  const auto step = static_cast<double>(num_done_steps);
  const auto warmup = static_cast<double>(num_warmup_steps_);
  const auto total = static_cast<double>(num_training_steps_);
  const double num_cycles = settings_.num_cycles.value_or(kDefaultNumCycles);
  const bool is_warming_up = num_done_steps < num_warmup_steps_;

  // This schedule is one step ahead, so that its last step reaches the floor.
  const bool is_ahead = settings_.type == ScheduleType::kCosineWarmupWithMinLr;

  if (settings_.type == ScheduleType::kConstant) return 1.0;
  if (is_warming_up && is_ahead && settings_.warmup_lr_rate) {
    return *settings_.warmup_lr_rate +
           (1.0 - *settings_.warmup_lr_rate) * step / std::max(1.0, warmup - 1.0);
  }
  if (is_warming_up) return (step + (is_ahead ? 1.0 : 0.0)) / std::max(1.0, warmup);
  if (settings_.type == ScheduleType::kConstantWithWarmup) return 1.0;
  if (settings_.type == ScheduleType::kLinear)
    return std::max(0.0, (total - step) / std::max(1.0, total - warmup));
  const double progress = (step - warmup + (is_ahead ? 1.0 : 0.0)) / std::max(1.0, total - warmup);
  return std::max(0.0, cosine(progress, num_cycles) * (1.0 - min_lr_rate_) + min_lr_rate_);
}

}  // namespace rematch
