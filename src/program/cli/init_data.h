#pragma once
#include <cstdint>
#include <string>

#include "learn/data/image_budget.h"

namespace rematch {

/// The `template.max_pixels` line with its reasons as comments.
std::string image_budget_lines(const ImageBudget& budget);

/// The keys of `training` with the reasons as comments: enough epochs for 200 optimizer steps.
/// @param num_samples  ≥ 1
/// @param has_val  evaluates when it saves
std::string schedule_lines(int64_t num_samples, bool has_val, bool is_stage_1);

}  // namespace rematch
