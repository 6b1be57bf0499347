#include "rollout/native/cache_size.h"

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

}  // namespace

int64_t num_cache_blocks(const CacheDemand& demand, const NativeSettings& options,
                         int64_t free_bytes) {
  const double bytes = options.kv_cache_gib > 0 ? options.kv_cache_gib * kBytesPerGib
                                                : static_cast<double>(free_bytes / kFreeFraction);
  const double most =
      std::min(bytes / static_cast<double>(demand.block_bytes), static_cast<double>(kMaxBlocks));
  const auto limit = static_cast<int64_t>(most);
  std::vector<int64_t> needs;
  for (const int64_t prompt_len : demand.prompt_lens) {
    const int64_t num_tokens = prompt_len + demand.max_new_tokens;
    needs.push_back(std::min(limit, num_tokens / options.block_len + 1));
  }
  const auto num_live = std::min(needs.size(), static_cast<size_t>(options.max_num_seqs));
  std::partial_sort(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(num_live),
                    needs.end(), std::greater<>());
  int64_t wanted = 1;  // one extra block for copies
  for (size_t i = 0; i < num_live && wanted < limit; ++i) wanted += needs[i];
  return std::min(wanted, limit);
}

int64_t free_memory_bytes(const c10::Device& device) {
  if (!device.is_cpu())
    return static_cast<int64_t>(at::accelerator::getMemoryInfo(device.index()).first);
  const int64_t available = host_memory().available;
  return available > 0 ? available : int64_t{4} << 30;
}

}  // namespace rematch
