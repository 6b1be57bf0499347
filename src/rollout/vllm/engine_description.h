#pragma once
#include <string>

#include "rollout/vllm/vllm_checks.h"
#include "rollout/vllm/vllm_options.h"

namespace rematch {

/// What the engine is started with, as JSON for the plug-in: vLLM's arguments, environment
/// variables, log. The same options give the same text. @param memory  of this machine; free memory
/// is only queried where it determines the size of the cache
std::string engine_description(const VllmOptions& options, const MemoryBytes& memory);

}  // namespace rematch
