#pragma once
#include <string>
#include <vector>

#include "tools/plan/plan.h"

namespace rematch {

/// Sentences with numbers; none for an unknown device. If the plan fits: a gradient checkpointing
/// that repeats less and fits too. Else how to make it fit: first a `global_max_length` that fits;
/// then each setting that is enough alone, those that keep the result of training first. If none is
/// enough alone, they are combined, and the sentence says whether that fits.
Strings make_advice(const PlanRequest& request, const MemoryPlan& plan);

/// "12.3 GiB"
std::string gib_text(int64_t bytes);
/// "8.77 B" or "415.35 M" parameters.
std::string count_text(int64_t count);

}  // namespace rematch
