#pragma once
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>

namespace rematch::test {

/// Counts the bytes that ATen's CPU allocator hands to this thread while the meter lives. Scratch
/// memory inside MKL is not seen.
class MemoryMeter {
 public:
  MemoryMeter()
      : counter_(std::make_shared<Counter>()),
        guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}

  /// Most bytes alive at once since construction or the last reset, without what was alive before.
  int64_t peak_bytes() const { return counter_->peak; }
  /// The largest single allocation since then.
  int64_t largest_bytes() const { return counter_->largest; }
  void reset() const { counter_->live = counter_->peak = counter_->largest = 0; }

 private:
  struct Counter : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device device) override {
      if (!device.is_cpu()) return;
      live += bytes;  // negative when freed
      peak = std::max(peak, live);
      largest = std::max(largest, bytes);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t live = 0, peak = 0, largest = 0;
  };
  std::shared_ptr<Counter> counter_;
  c10::DebugInfoGuard guard_;
};

}  // namespace rematch::test
