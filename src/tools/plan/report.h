#pragma once
#include <string>

#include "base/json.h"
#include "tools/plan/plan.h"

namespace rematch {

/// A plan as one JSON object (docs/plan.md).
Json plan_json(const PlanRequest& request, const MemoryPlan& plan);

/// A plan as text, at most 80 columns wide.
/// @param title  first line, e.g. the model's directory
std::string plan_text(const PlanRequest& request, const MemoryPlan& plan, const std::string& title);

}  // namespace rematch
