#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program/assembly/job.h"

namespace rematch {

/// Describes a run that is about to start, one line per topic: trained parameters, data, steps,
/// rollouts, planned memory (docs/plan.md), output directory.
/// @param first_step  optimizer steps done so far
/// @param last_step   optimizer steps at the end
Strings start_lines(const Job& job, int64_t first_step, int64_t last_step);

}  // namespace rematch
