#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "assembly/session.h"

namespace rematch {

/// Describes a run that is about to start, one line per topic: trained parameters, data, steps,
/// rollouts, planned memory (docs/plan.md), output directory.
/// @param first_step, last_step  optimizer steps done so far, and at the end
std::vector<std::string> start_lines(const Session& session, const Group& group, int64_t first_step,
                                     int64_t last_step);

/// Memory in use: bytes of this process (CPU) or of its allocator on the device.
int64_t memory_in_use(const at::Device& device);

}  // namespace rematch
