#include "support/pretend_memory.h"

#include <c10/util/Backtrace.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "support/pretend_device.h"

namespace rematch::test {
namespace {

// No address of a process has this bit: a pointer that is followed ends the process, like one to a
// GPU's memory.
constexpr uintptr_t kFarAway = uintptr_t{1} << 62;
constexpr size_t kAlignment = 64;

void* far_of(void* near) {
  return near == nullptr ? nullptr
                         : reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(near) | kFarAway);
}
void* near_of(const void* far) {
  return far == nullptr ? nullptr
                        : reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(far) & ~kFarAway);
}

std::function<bool()> is_full;
LaunchObserver observer;

// Sizes as CUDA's caching allocator rounds them.
constexpr int64_t kBlock = 512, kSegment = int64_t{2} << 20;

int64_t rounded(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::mutex& memory_mutex() {
  static auto* const one = new std::mutex;  // outlives every tensor
  return *one;
}
DeviceMemory memory;
int64_t capacity = int64_t{1} << 30;

void take_bytes(int64_t bytes) {
  const std::lock_guard lock(memory_mutex());
  memory.allocated += rounded(bytes, kBlock);
  memory.peak_allocated = std::max(memory.peak_allocated, memory.allocated);
  memory.reserved = std::max(memory.reserved, rounded(memory.allocated, kSegment));
}

void give_back_bytes(int64_t bytes) {
  const std::lock_guard lock(memory_mutex());
  memory.allocated -= rounded(bytes, kBlock);
}

/// Memory that a data pointer of the device owns.
struct Owned {
  int64_t size = 0;
  at::Tensor tensor;       // memory that a kernel of the CPU made
  void* memory = nullptr;  // memory of this allocator
  ~Owned() {
    std::free(memory);
    give_back_bytes(size);
  }
};

void drop(void* owned) { delete static_cast<Owned*>(owned); }

class Allocator : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    if (size > 0 && is_full && is_full()) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "pretend out of memory. Tried to allocate ", size,
                       " bytes. Device 0 has a total capacity of ",
                       "1.00 GiB of which 0 bytes is free.");
    }
    if (size == 0) return {nullptr, nullptr, nullptr, c10::Device(kPretend, 0)};
    auto owned = std::make_unique<Owned>();
    owned->memory =
        std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
    owned->size = static_cast<int64_t>(size);
    take_bytes(owned->size);
    void* const near = owned->memory;
    return {far_of(near), owned.release(), &drop, c10::Device(kPretend, 0)};
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(near_of(to), near_of(from), size);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    const std::lock_guard lock(memory_mutex());
    memory.reserved = rounded(memory.allocated, kSegment);
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    const DeviceMemory now = pretend_memory_use();
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = now.allocated;  // 0: of all pools
    stats.reserved_bytes[0].current = now.reserved;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    const std::lock_guard lock(memory_mutex());
    return {static_cast<size_t>(std::max<int64_t>(0, capacity - memory.reserved)),
            static_cast<size_t>(capacity)};
  }
};

std::atomic<int64_t> num_waits{0}, num_uploads{0}, num_launches{0}, bytes_up{0}, bytes_down{0};

}  // namespace

c10::DeviceAllocator& pretend_allocator() {
  static auto* const allocator = new Allocator;  // outlives every tensor
  return *allocator;
}

at::Tensor seen_by_host(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != kPretend) return tensor;
  const auto options = at::TensorOptions(at::kCPU).dtype(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(
      near_of(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
      [storage = tensor.storage()](void*) {}, options);
}

at::Tensor given_to_device(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  auto owned = std::make_unique<Owned>();
  owned->tensor = tensor;
  owned->size = static_cast<int64_t>(tensor.storage().nbytes());
  take_bytes(owned->size);
  c10::DataPtr data(far_of(const_cast<void*>(tensor.storage().data())), owned.release(), &drop,
                    c10::Device(kPretend, 0));
  c10::Storage storage(c10::Storage::use_byte_size_t{}, tensor.storage().nbytes(), std::move(data),
                       &pretend_allocator(), true);
  at::Tensor given = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.dtype());
  given.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                     tensor.storage_offset());
  return given;
}

void count_wait(const char* why) {
  ++num_waits;
  static const bool traced = std::getenv("REMATCH_TRACE_WAITS") != nullptr;
  if (traced) std::fprintf(stderr, "wait: %s\n%s\n", why, c10::get_backtrace(0, 24, true).c_str());
}

void count_upload() { ++num_uploads; }

void count_bytes(int64_t up, int64_t down) {
  bytes_up += up;
  bytes_down += down;
}

void count_launch(const std::string& name, const std::vector<std::vector<int64_t>>& sizes) {
  ++num_launches;
  static const bool traced = std::getenv("REMATCH_TRACE_LAUNCHES") != nullptr;
  if (traced) std::fprintf(stderr, "launch: %s\n", name.c_str());
  if (observer) observer(name, sizes);
}

void watch_launches(LaunchObserver one) { observer = std::move(one); }

Traffic traffic() {
  return {num_waits.load(), num_uploads.load(), num_launches.load(), bytes_up.load(),
          bytes_down.load()};
}

DeviceMemory pretend_memory_use() {
  const std::lock_guard lock(memory_mutex());
  return memory;
}

void set_pretend_capacity(int64_t bytes) {
  const std::lock_guard lock(memory_mutex());
  capacity = bytes;
  memory.peak_allocated = memory.allocated;
}

void set_pretend_full(std::function<bool()> now) { is_full = std::move(now); }

void register_pretend_memory() { c10::SetAllocator(kPretend, &pretend_allocator()); }

}  // namespace rematch::test
