#pragma once
#include <cstdint>
#include <string>

#include "base/host_memory.h"
#include "rollout/vllm/vllm_options.h"

namespace rematch {

/// Checks that need arithmetic only, before data is read (BEHAVIOUR 4.3): ranks and tensor_parallel_size, heads, memory. A model
/// directory without a readable config.json is left to the model loader.
/// @param memory  of the device that the engine would run on; zeros: unknown, not checked
/// @throws UserError (environment)
void check_vllm_arithmetic(const VllmOptions& options, const MemoryBytes& memory);

/// Sets `max_model_len` once the data is known: as given, else as the data requires, never beyond the model's positions.
/// @param where  "path:line" of the longest prompt. @throws UserError (config) as check_vllm_lengths()
void settle_model_len(VllmOptions& options, int64_t prompt_tokens, int max_new_tokens, const std::string& where);

/// Rejects prompts whose answers cannot end before `max_model_len`; nothing is checked when that is 0.
/// @param where  "path:line" of the longest prompt. @throws UserError (config) with both numbers
void check_vllm_lengths(const VllmOptions& options, int64_t prompt_tokens, int max_new_tokens, const std::string& where);

/// Bytes of key/value cache to request on a CPU: enough for `max_num_seqs` full sequences, within `gpu_memory_utilization` of the memory.
/// @param memory  as above; zeros: memory for one more sequence is assumed
int64_t kv_cache_bytes(const VllmOptions& options, const MemoryBytes& memory);

}  // namespace rematch
