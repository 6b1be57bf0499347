#include "engine/rollout/native/cache_size.h"

#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/host_memory.h"

namespace rematch {
namespace {

constexpr int64_t kFreeFraction = 4;  // the rest is for training
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();

// Bytes for blocks and states.
double cache_bytes(const NativeSettings& options, int64_t free_bytes) {
  return options.kv_cache_gib > 0 ? options.kv_cache_gib * kBytesPerGib
                                  : static_cast<double>(free_bytes / kFreeFraction);
}

// Blocks of a prompt and its answer; the answer's end may touch one more.
int64_t blocks_of(int64_t prompt_len, const CacheDemand& demand, const NativeSettings& options) {
  return (prompt_len + demand.max_new_tokens) / options.block_len + 1;
}

}  // namespace

int64_t num_cache_states(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes) {
  if (demand.state_bytes == 0 || demand.prompt_lens.empty()) return 0;
  const int64_t longest = *std::ranges::max_element(demand.prompt_lens);
  const double bytes = cache_bytes(options, free_bytes),
               bytes_of_state = static_cast<double>(demand.state_bytes),
               bytes_of_sequence =
                   bytes_of_state + static_cast<double>(blocks_of(longest, demand, options)) *
                                        static_cast<double>(demand.block_bytes);
  const auto most = std::min<double>(static_cast<double>(demand.prompt_lens.size()),
                                     static_cast<double>(options.max_num_seqs));
  const auto num_live = static_cast<int64_t>(std::clamp(bytes / bytes_of_sequence, 1.0, most));
  const double rest =
      std::max(0.0, bytes - static_cast<double>(num_live) * bytes_of_sequence) / bytes_of_state;
  const auto num_saved = static_cast<int64_t>(
      std::min(rest, static_cast<double>(std::min(num_live, demand.num_repeated))));
  return num_live + num_saved;
}

int64_t num_cache_blocks(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes) {
  const double bytes =
      std::max(0.0, cache_bytes(options, free_bytes) -
                        static_cast<double>(num_cache_states(demand, options, free_bytes)) *
                            static_cast<double>(demand.state_bytes));
  const double most =
      std::min(bytes / static_cast<double>(demand.block_bytes), static_cast<double>(kMaxBlocks));
  const auto limit = static_cast<int64_t>(most);
  std::vector<int64_t> needs;
  for (const int64_t prompt_len : demand.prompt_lens) {
    needs.push_back(std::min(limit, blocks_of(prompt_len, demand, options)));
  }
  const auto num_live = std::min(needs.size(), static_cast<size_t>(options.max_num_seqs));
  std::partial_sort(needs.begin(), needs.begin() + num_live, needs.end(), std::greater<>());
  int64_t wanted = 1;  // one extra block for copies
  for (size_t i = 0; i < num_live && wanted < limit; ++i) wanted += needs[i];
  return std::min(wanted, limit);
}

int64_t free_memory_bytes(const c10::Device& device) {
  if (!device.is_cpu()) {
    // Memory that torch's allocator holds without using it is free for the cache.
    const auto stats = at::accelerator::getDeviceStats(device.index());
    constexpr size_t kAllPools = 0;
    return static_cast<int64_t>(at::accelerator::getMemoryInfo(device.index()).first) +
           stats.reserved_bytes[kAllPools].current - stats.allocated_bytes[kAllPools].current;
  }
  const int64_t available = host_memory().available;
  return available > 0 ? available : int64_t{4} << 30;
}

}  // namespace rematch
