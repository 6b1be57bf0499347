#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

namespace rematch {

/// A configuration changed in one respect.
struct PlanChange {
  std::string words;  ///< e.g. "training.gradient_checkpointing: true"
  PlanRequest request;
};

/// What to change so that a plan fits, in sentences with numbers; empty when it fits or the device
/// is unknown. Changes that keep the result of training come first; if none is enough alone, they
/// are added up.
std::vector<std::string> advice_for(const PlanRequest& request, const MemoryPlan& plan);

/// The same model trained in full and with an adapter, with and without gradient checkpointing.
std::vector<PlanChange> usual_ways(const PlanRequest& request);

/// "12.3 GiB"
std::string gib_text(int64_t bytes);

}  // namespace rematch
