#pragma once
#include <string>

#include "base/json.h"
#include "plan/plan.h"

namespace rematch {

/// A plan as one JSON object (docs/plan.md).
Json plan_json(const PlanRequest& request, const MemoryPlan& plan);

/// A plan for people, at most 80 columns wide.
/// @param title  of the model, e.g. its directory
std::string plan_text(const PlanRequest& request, const MemoryPlan& plan, const std::string& title);

}  // namespace rematch
