#pragma once
#include <string>
#include <vector>

#include "tools/plan/plan.h"

namespace rematch {

/// A variant of a configuration.
struct PlanVariant {
  std::string name;  ///< e.g. "full, checkpointing"
  PlanRequest request;
};

/// Sentences with numbers that say how to make a plan fit; empty if it fits or the device is
/// unknown. First a `global_max_length` that fits; then each setting that is enough alone, those
/// that keep the result of training first. If none is enough alone, they are combined, and the
/// sentence says whether that fits.
std::vector<std::string> make_advice(const PlanRequest& request, const MemoryPlan& plan);

/// The same model with full fine-tuning and with an adapter, with and without gradient
/// checkpointing, and with the base weights of the last in 4 bits (but not with vLLM). An adapter
/// whose settings match no module is left out.
std::vector<PlanVariant> common_variants(const PlanRequest& request);

/// "12.3 GiB"
std::string gib_text(int64_t bytes);
/// "8.77 B" or "415.35 M" parameters.
std::string count_text(int64_t count);

}  // namespace rematch
