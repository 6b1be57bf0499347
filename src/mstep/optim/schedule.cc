#include "mstep/optim/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr double kDefaultNumCycles = 0.5;

// The ONE table of schedules: which keywords each takes.
struct TypeRow {
  const char* name;
  bool ignores_keywords;  ///< transformers drops them without a word for these two
  std::vector<std::string> keywords;
};

const std::vector<TypeRow>& type_rows() {
  static const std::vector<TypeRow> kRows = {
      {"constant", true, {}},
      {"constant_with_warmup", true, {}},
      {"linear", false, {}},
      {"cosine", false, {"num_cycles"}},
      {"cosine_with_min_lr", false, {"num_cycles", "min_lr", "min_lr_rate"}},
      {"cosine_warmup_with_min_lr", false, {"num_cycles", "min_lr", "min_lr_rate", "warmup_lr_rate"}},
  };
  return kRows;
}

UserError keyword_error(const std::string& error, const std::string& what, const std::string& fix) {
  return UserError(ErrorKind::kConfig, {.error = error, .where = "training.lr_scheduler_kwargs", .what = what, .fix = fix});
}

const TypeRow& row_of(const std::string& type) {
  for (const TypeRow& row : type_rows()) {
    if (type == row.name) return row;
  }
  const std::vector<std::string> near = near_names(type, schedule_types(), 1);
  throw UserError(ErrorKind::kConfig,
                  {.error = fmt::format("unknown learning-rate schedule \"{}\"", type),
                   .where = "training.lr_scheduler_type",
                   .what = fmt::format("known: {}", join(schedule_types(), ", ")),
                   .fix = near.empty() ? "choose one of the known schedules" : fmt::format("did you mean \"{}\"?", near.front())});
}

void check_keywords(const TypeRow& row, const ScheduleOptions& options) {
  if (row.ignores_keywords) return;
  const std::pair<const char*, bool> given[] = {{"num_cycles", options.num_cycles.has_value()},
                                                {"min_lr", options.min_lr.has_value()},
                                                {"min_lr_rate", options.min_lr_rate.has_value()},
                                                {"warmup_lr_rate", options.warmup_lr_rate.has_value()}};
  for (const auto& [keyword, is_given] : given) {
    const bool is_known = std::find(row.keywords.begin(), row.keywords.end(), keyword) != row.keywords.end();
    if (!is_given || is_known) continue;
    throw keyword_error(fmt::format("{} takes no {}", row.name, keyword),
                        row.keywords.empty() ? "it takes no keywords" : fmt::format("it takes {}", join(row.keywords, ", ")),
                        fmt::format("remove {} or choose another lr_scheduler_type", keyword));
  }
}

// Floor of the two cosines that have one, as a share of the learning rate.
double floor_rate(const ScheduleOptions& options) {
  if (options.min_lr && options.min_lr_rate) {
    throw keyword_error("both min_lr and min_lr_rate are given",
                        fmt::format("min_lr {}, min_lr_rate {}", *options.min_lr, *options.min_lr_rate), "keep one of them");
  }
  if (options.min_lr_rate) return *options.min_lr_rate;
  if (!options.min_lr) {
    throw keyword_error(fmt::format("{} needs min_lr or min_lr_rate", options.type), "neither is given",
                        "add one of them, e.g. lr_scheduler_kwargs: {min_lr_rate: 0.1}");
  }
  if (!(options.learning_rate > 0)) {
    throw keyword_error("min_lr needs a positive learning rate", fmt::format("learning_rate {}", options.learning_rate),
                        "set training.learning_rate, or use min_lr_rate");
  }
  return *options.min_lr / options.learning_rate;
}

double cosine(double progress, double num_cycles) { return 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles * 2.0 * progress)); }

}  // namespace

const std::vector<std::string>& schedule_types() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const TypeRow& row : type_rows()) names.emplace_back(row.name);
    return names;
  }();
  return kNames;
}

int64_t num_warmup_steps(int64_t warmup_steps, double warmup_ratio, int64_t num_training_steps) {
  if (warmup_steps > 0) return warmup_steps;
  return static_cast<int64_t>(std::ceil(static_cast<double>(num_training_steps) * warmup_ratio));
}

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  const TypeRow& row = row_of(options_.type);
  check_keywords(row, options_);
  const bool has_floor = std::find(row.keywords.begin(), row.keywords.end(), "min_lr") != row.keywords.end();
  if (has_floor) min_lr_rate_ = floor_rate(options_);
}

double Schedule::factor(int64_t num_done_steps) const {
  const auto step = static_cast<double>(num_done_steps);
  const auto warmup = static_cast<double>(options_.num_warmup_steps);
  const auto total = static_cast<double>(options_.num_training_steps);
  const double num_cycles = options_.num_cycles.value_or(kDefaultNumCycles);
  const bool is_warming_up = num_done_steps < options_.num_warmup_steps;

  if (options_.type == "constant") return 1.0;
  if (options_.type == "cosine_warmup_with_min_lr") {
    if (is_warming_up && !options_.warmup_lr_rate) return (step + 1.0) / std::max(1.0, warmup);
    if (is_warming_up) return *options_.warmup_lr_rate + (1.0 - *options_.warmup_lr_rate) * step / std::max(1.0, warmup - 1.0);
    const double progress = (step - warmup + 1.0) / std::max(1.0, total - warmup);  // one ahead: the last step reaches the floor
    return std::max(0.0, cosine(progress, num_cycles) * (1.0 - min_lr_rate_) + min_lr_rate_);
  }
  if (is_warming_up) return step / std::max(1.0, warmup);
  if (options_.type == "constant_with_warmup") return 1.0;
  if (options_.type == "linear") return std::max(0.0, (total - step) / std::max(1.0, total - warmup));
  const double progress = (step - warmup) / std::max(1.0, total - warmup);
  return std::max(0.0, cosine(progress, num_cycles) * (1.0 - min_lr_rate_) + min_lr_rate_);
}

}  // namespace rematch
