#include "support/pretend_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "support/pretend_memory.h"

namespace rematch::test {
namespace {

std::atomic<bool> is_busy = false;

// One device with one stream, on which everything is done at once.
struct Guard : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kPretend; }
  c10::Device exchangeDevice(c10::Device) const override { return {kPretend, 0}; }
  c10::Device getDevice() const override { return {kPretend, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kPretend, 0));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { count_wait("synchronizeStream"); }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    *event = &is_busy;
  }
  bool queryEvent(void*) const override { return !is_busy; }
  double elapsedTime(void*, void*, const c10::DeviceIndex) const override { return 1; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  void synchronizeDevice(const c10::DeviceIndex) const override { count_wait("synchronizeDevice"); }
};

// Page-locked memory: ordinary memory that is remembered.
class PinnedAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* data = std::malloc(size + 1);
    const std::lock_guard lock(mutex());
    blocks()[data] = size + 1;
    return {data, data, &forget, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }
  static bool holds(const void* data) {
    const std::lock_guard lock(mutex());
    auto next = blocks().upper_bound(const_cast<void*>(data));
    if (next == blocks().begin()) return false;
    --next;
    return static_cast<const char*>(data) < static_cast<char*>(next->first) + next->second;
  }

 private:
  static std::map<void*, size_t>& blocks() {
    static auto* const map = new std::map<void*, size_t>;
    return *map;
  }
  static std::mutex& mutex() {
    static auto* const one = new std::mutex;
    return *one;
  }
  static void forget(void* data) {
    const std::lock_guard lock(mutex());
    blocks().erase(data);
    std::free(data);
  }
};

struct Hooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  // at::manual_seed() seeds the generators of all devices.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return pretend_generator();
  }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::Device getDeviceFromPtr(void*) const override { return {kPretend, 0}; }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::holds(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static auto* const allocator = new PinnedAllocator;
    return allocator;
  }
};

}  // namespace

void set_pretend_busy(bool busy) { is_busy = busy; }

const at::Generator& pretend_generator() {
  static const at::Generator generator = at::detail::createCPUGenerator();
  return generator;
}

at::Device pretend_device() {
  static const bool is_registered = [] {
    static const Guard guard;
    static Hooks hooks;
    c10::register_privateuse1_backend(kPretendName);
    c10::impl::registerDeviceGuard(kPretend, &guard);
    at::RegisterPrivateUse1HooksInterface(&hooks);
    register_pretend_memory();
    register_pretend_operators();
    register_pretend_fallback();
    return true;
  }();
  (void)is_registered;
  return {kPretend, 0};
}

}  // namespace rematch::test
