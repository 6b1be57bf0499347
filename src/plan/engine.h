#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/parameters.h"
#include "plan/request.h"

namespace rematch {

/// Bytes by what they are for, in the order they are shown.
using NamedBytes = std::vector<std::pair<std::string, int64_t>>;

/// What a rollout engine holds while it answers a window's prompts, in addition to the training
/// state.
/// @param free_bytes  of the device, before the engine takes anything
NamedBytes engine_memory(const PlanRequest& request, const TrainedParameters& trained,
                         int64_t free_bytes);

/// What a vLLM engine holds: its share of the device. 0 for other backends.
int64_t vllm_share(const PlanRequest& request);

}  // namespace rematch
