#pragma once
#include <c10/core/Device.h>

#include <cstdint>
#include <span>

#include "rollout/engine.h"

namespace rematch {

/// Inputs of num_cache_blocks().
struct CacheDemand {
  std::span<const int64_t> prompt_lens;
  int64_t max_new_tokens = 0;
  int64_t block_bytes = 0;
};

/// Number of blocks to reserve: enough for the longest `max_num_seqs` prompts with their answers,
/// so that no sequence is preempted, but at most `kv_cache_gib` (default: a quarter of the free
/// memory). On a CPU, memory is committed only when blocks are written.
/// @return  0 if not even one block fits
int64_t num_cache_blocks(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes);

/// Free memory of a device in bytes, as reported by the system, within the limit of the control
/// group.
int64_t free_memory_bytes(const c10::Device& device);

}  // namespace rematch
