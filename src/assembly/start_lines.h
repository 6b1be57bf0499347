#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "assembly/session.h"

namespace rematch {

/// What a run is about to do, a line each: what is trained, on what, for how long, with which
/// rollouts, the memory of each phase as planned (docs/plan.md), and where it writes.
/// @param first_step, last_step  optimizer steps that are done, and that will be
std::vector<std::string> start_lines(const Session& session, const Group& group, int64_t first_step,
                                     int64_t last_step);

/// Bytes that this process (on a CPU) or its allocator on the device holds now.
int64_t memory_in_use(const at::Device& device);

}  // namespace rematch
