#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rematch::test {

/// The name under which the device is registered with torch, for choose_device().
inline constexpr const char* kPretendName = "pretend";

/// A device that is not the CPU, for machines without one: torch's PrivateUse1, which computes with
/// the CPU's kernels, but whose memory the host cannot read. What fails on a GPU fails here: an
/// operator that is given tensors of both devices throws, a pointer to the device's memory that the
/// host follows ends the process, and what makes the host wait is counted. Registers it at the
/// first call.
at::Device pretend_device();

/// From now on the device has no memory left while `is_full` answers true: what allocates throws
/// what CUDA's allocator throws. Null: never.
void set_pretend_full(std::function<bool()> is_full);

/// While busy, no event of the device is done. Default: all are.
void set_pretend_busy(bool busy);

/// Work of the device, and copies between it and the host.
struct Traffic {
  /// times the host waits for the device: copies to the host and to the device that are not queued
  /// in page-locked memory, scalars it reads
  int64_t waits = 0;
  int64_t uploads = 0;   ///< copies to the device from page-locked memory that are queued
  int64_t launches = 0;  ///< operators that write memory of the device; views are free
  int64_t bytes_up = 0, bytes_down = 0;

  Traffic operator-(const Traffic& before) const {
    return {waits - before.waits, uploads - before.uploads, launches - before.launches,
            bytes_up - before.bytes_up, bytes_down - before.bytes_down};
  }
};

/// Counted since the start of the process, on all threads. With REMATCH_TRACE_WAITS in the
/// environment every wait prints its stack, with REMATCH_TRACE_LAUNCHES every launch its operator.
Traffic traffic();

/// From now on called at every launch. Null: never.
/// @param sizes  of the operator's tensors
using LaunchObserver =
    std::function<void(const std::string& name, const std::vector<std::vector<int64_t>>& sizes)>;
void watch_launches(LaunchObserver observer);

/// Memory of the device, as CUDA's caching allocator counts it.
struct DeviceMemory {
  int64_t allocated = 0;  ///< bytes of live tensors, each rounded up to 512
  int64_t reserved = 0;   ///< taken from the driver in segments of 2 MiB; freed tensors stay in it
  int64_t peak_allocated = 0;
};
DeviceMemory pretend_memory_use();
/// From now on the device has this much memory, and the peak starts again. Default: 1 GiB.
void set_pretend_capacity(int64_t bytes);

}  // namespace rematch::test
