#pragma once
#include <cstdint>
#include <string>

#include "base/host_memory.h"
#include "rollout/vllm/vllm_options.h"

namespace rematch {

/// What can be refused by arithmetic alone, before data are read (BEHAVIOUR 4.3): ranks and tensor_parallel_size, heads, memory. A model
/// directory without a readable config.json is left to whoever loads the model.
/// @param memory  of the device that the engine would run on; zeros: not known, not checked
/// @throws UserError (environment)
void check_vllm_arithmetic(const VllmOptions& options, const MemoryBytes& memory);

/// Settles `max_model_len` once the data are known: as given, as long as they ask for when it was not, never beyond the model's positions.
/// @param where  "path:line" of the longest prompt. @throws UserError (config) as check_vllm_lengths()
void settle_model_len(VllmOptions& options, int64_t prompt_tokens, int max_new_tokens, const std::string& where);

/// Refuses prompts whose answers cannot end before `max_model_len`; nothing is checked when that is 0.
/// @param where  "path:line" of the longest prompt. @throws UserError (config) with both numbers
void check_vllm_lengths(const VllmOptions& options, int64_t prompt_tokens, int max_new_tokens, const std::string& where);

/// Bytes of key/value cache to ask for on a CPU: enough for `max_num_seqs` full sequences, within `gpu_memory_utilization` of the memory.
/// @param memory  as above; zeros: one sequence's worth more is assumed to be there
int64_t kv_cache_bytes(const VllmOptions& options, const MemoryBytes& memory);

}  // namespace rematch
