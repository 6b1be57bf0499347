#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/host_memory.h"
#include "base/strings.h"
#include "engine/rollout/vllm/vllm_options.h"

namespace rematch {

/// Checks ranks, tensor_parallel_size, heads and memory before data is read (BEHAVIOUR 4.3). Leaves
/// a model directory without config.json to the model loader.
/// @param memory  of the engine's device; zeros: unknown, not checked
/// @throws UserError (environment)
void check_vllm_arithmetic(const VllmOptions& options, const MemoryBytes& memory);

/// Checks only that the number of ranks is a multiple of tensor_parallel_size.
void check_vllm_ranks(const VllmOptions& options);

/// Rejects an engine that spans hosts, because its ranks communicate in every layer.
/// @param hosts  host names by rank.
/// @throws UserError (environment)
void check_vllm_hosts(const Strings& hosts, int tensor_parallel_size);

/// Sets `max_model_len` when the data is known: the given value, else the length that the data
/// requires; at most the number of positions of the model.
/// @param where  "path:line" of the longest prompt.
/// @throws UserError (config) as check_vllm_lengths()
void set_max_model_len(VllmOptions& options, int64_t prompt_tokens, int max_new_tokens,
                       const std::string& where);

/// Rejects prompts that exceed `max_model_len` together with their answers. Checks nothing if it is
/// 0.
/// @param where  "path:line" of the longest prompt.
/// @throws UserError (config) with both numbers
void check_vllm_lengths(const VllmOptions& options, int64_t prompt_tokens, int max_new_tokens,
                        const std::string& where);

/// Equal share of this host's memory for one rank.
MemoryBytes rank_memory(const VllmOptions& options);

/// Bytes of key/value cache to request on a CPU: enough for `max_num_seqs` full sequences, within
/// `gpu_memory_utilization` of the memory, but at least one sequence.
/// @param memory  as above; zeros: no limit
int64_t kv_cache_bytes(const VllmOptions& options, const MemoryBytes& memory);

}  // namespace rematch
