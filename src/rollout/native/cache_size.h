#pragma once
#include <c10/core/Device.h>

#include <cstdint>
#include <span>

#include "rollout/engine.h"

namespace rematch {

/// The requirements of a cache.
struct CacheDemand {
  std::span<const int64_t> prompt_lens;
  int64_t max_new_tokens = 0;
  int64_t block_bytes = 0;
};

/// Blocks the native engine reserves: as many as the longest `max_num_seqs` prompts can fill with
/// their answers, so that no sequence is ever preempted, but at most `kv_cache_gib`, or without
/// that key a quarter of the free memory. Memory is only committed as blocks are written to (on
/// CPU).
/// @return  0 when not even one block fits
int64_t num_cache_blocks(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes);

/// Memory available on a device now, in bytes: as the system reports it, within the limit of the
/// control group.
int64_t free_memory_bytes(const c10::Device& device);

}  // namespace rematch
