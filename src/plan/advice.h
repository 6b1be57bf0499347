#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

namespace rematch {

/// A variant of a configuration.
struct PlanVariant {
  std::string name;  ///< e.g. "full, checkpointing"
  PlanRequest request;
};

/// Changes that make a plan fit, as sentences with numbers; empty if it fits or the device is
/// unknown. Changes that keep the result of training come first. If no change is enough alone, they
/// are combined.
std::vector<std::string> make_advice(const PlanRequest& request, const MemoryPlan& plan);

/// The same model with full fine-tuning and with an adapter, with and without gradient
/// checkpointing.
std::vector<PlanVariant> common_variants(const PlanRequest& request);

/// "12.3 GiB"
std::string gib_text(int64_t bytes);
/// "8.77 B" or "415.35 M" parameters.
std::string count_text(int64_t count);

}  // namespace rematch
