#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/plan/parameters.h"
#include "tools/plan/request.h"

namespace rematch {

/// Bytes by purpose, in the order in which they are shown.
using NamedBytes = std::vector<std::pair<std::string, int64_t>>;

/// Memory of a rollout engine during the rollouts of a window, in addition to the training state.
/// @param free_bytes  of the device, before the engine allocates anything
NamedBytes engine_memory(const PlanRequest& request, const TrainedParameters& trained,
                         int64_t free_bytes);

/// Memory of a vLLM engine: its share of the device. 0 for other backends.
int64_t vllm_share(const PlanRequest& request);

}  // namespace rematch
