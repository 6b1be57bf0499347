#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/host_memory.h"
#include "rollout/vllm/vllm_options.h"

namespace rematch {

/// Checks that need only arithmetic, made before data is read (BEHAVIOUR 4.3): ranks and
/// tensor_parallel_size, heads, memory. A model directory without a readable config.json is left to
/// the model loader.
/// @param memory  of the device that the engine would run on; zeros: unknown, not checked
/// @throws UserError (environment)
void check_vllm_arithmetic(const VllmOptions& options, const MemoryBytes& memory);

/// The first of these checks: the number of ranks is a multiple of tensor_parallel_size.
void check_vllm_ranks(const VllmOptions& options);

/// Rejects an engine across hosts: its ranks communicate in every layer. @param hosts  names by
/// rank @throws UserError (environment)
void check_vllm_hosts(const std::vector<std::string>& hosts, int tensor_parallel_size);

/// Sets `max_model_len` once the data is known: as given, else as the data requires, never beyond
/// the model's positions.
/// @param where  "path:line" of the longest prompt. @throws UserError (config) as
/// check_vllm_lengths()
void settle_model_len(VllmOptions& options, int64_t prompt_tokens, int max_new_tokens,
                      const std::string& where);

/// Rejects prompts whose answers cannot end before `max_model_len`; nothing is checked when that is
/// 0.
/// @param where  "path:line" of the longest prompt. @throws UserError (config) with both numbers
void check_vllm_lengths(const VllmOptions& options, int64_t prompt_tokens, int max_new_tokens,
                        const std::string& where);

/// Memory of this host for one of its ranks: an equal share.
MemoryBytes memory_of_rank(const VllmOptions& options);

/// Bytes of key/value cache to request on a CPU: enough for `max_num_seqs` full sequences, within
/// `gpu_memory_utilization` of the memory.
/// @param memory  as above; zeros: memory for one more sequence is assumed
int64_t kv_cache_bytes(const VllmOptions& options, const MemoryBytes& memory);

}  // namespace rematch
