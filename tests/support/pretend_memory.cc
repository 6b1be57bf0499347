#include "support/pretend_memory.h"

#include <c10/util/Backtrace.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

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

class Allocator : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    if (size > 0 && is_full && is_full()) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "pretend out of memory. Tried to allocate ", size,
                       " bytes. Device 0 has a total capacity of ",
                       "1.00 GiB of which 0 bytes is free.");
    }
    void* near =
        size > 0 ? std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment)
                 : nullptr;
    return {far_of(near), near, &std::free, c10::Device(kPretend, 0)};
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(near_of(to), near_of(from), size);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {size_t{1} << 30, size_t{1} << 30};
  }
};

std::atomic<int64_t> num_waits{0}, num_uploads{0};

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
  const auto drop = [](void* kept) { delete static_cast<at::Tensor*>(kept); };
  c10::DataPtr data(far_of(const_cast<void*>(tensor.storage().data())), new at::Tensor(tensor),
                    drop, c10::Device(kPretend, 0));
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

Traffic traffic() { return {num_waits.load(), num_uploads.load()}; }

void set_pretend_full(std::function<bool()> now) { is_full = std::move(now); }

void register_pretend_memory() { c10::SetAllocator(kPretend, &pretend_allocator()); }

}  // namespace rematch::test
