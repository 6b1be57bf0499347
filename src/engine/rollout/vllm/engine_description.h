#pragma once
#include <string>

#include "engine/rollout/vllm/vllm_checks.h"
#include "engine/rollout/vllm/vllm_options.h"

namespace rematch {

/// Arguments to start the engine with, as JSON for the plug-in: vLLM's arguments, log, group. The
/// same options give the same text.
/// @param memory  of this machine; only its total is used
std::string engine_description(const VllmOptions& options, const MemoryBytes& memory);

}  // namespace rematch
