#pragma once
#include <c10/core/Device.h>

#include <cstdint>
#include <span>

#include "engine/rollout/engine.h"

namespace rematch {

/// Inputs of num_cache_blocks().
struct CacheDemand {
  std::span<const int64_t> prompt_lens;
  int64_t max_new_tokens = 0;
  int64_t block_bytes = 0;
  int64_t state_bytes = 0;   ///< of a sequence's recurrent state; 0 = the model has none
  int64_t num_repeated = 0;  ///< prompts that occur again, whose states are worth saving
};

/// Number of blocks to reserve: enough for the longest `max_num_seqs` prompts with their answers,
/// so that no sequence is preempted, but at most what num_cache_states() leaves of `kv_cache_gib`
/// (default: a quarter of the free memory). On a CPU, memory is committed only when blocks are
/// written.
/// @return  0 if not even one block fits
int64_t num_cache_blocks(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes);

/// Number of recurrent states to reserve: one for each of the sequences that run at the same time
/// with their blocks, and one for each repeated prompt as far as there is memory. States come
/// first, num_cache_blocks() gets the rest.
/// @return  0 if the model has no states; at least 1 otherwise
int64_t num_cache_states(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes);

/// Free memory of a device in bytes: on a CPU as reported by the system, within the limit of the
/// control group; on a device the driver's, and what torch's allocator holds without using it.
int64_t free_memory_bytes(const c10::Device& device);

}  // namespace rematch
