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

/// Refuses a prompt that does not fit into the key/value cache of the `native` engine with its
/// answer; `kv_cache_gib` must say how large the cache is.
/// @param who  the sample, for the error
/// @throws UserError (config) as the engine (check_fits)
void check_native_cache(const PlanRequest& request, int64_t prompt_len, const std::string& who);

/// Memory of a vLLM engine: its share of the device. 0 for other backends.
int64_t vllm_share(const PlanRequest& request);

}  // namespace rematch
