#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>

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

/// Copies between host and device.
struct Traffic {
  /// times the host waits for the device: copies to the host, scalars it reads, uploads that are
  /// not queued
  int64_t waits = 0;
  int64_t uploads = 0;  ///< copies to the device from page-locked memory that are queued

  Traffic operator-(const Traffic& before) const {
    return {waits - before.waits, uploads - before.uploads};
  }
};

/// Counted since the start of the process, on all threads. With REMATCH_TRACE_WAITS in the
/// environment every wait prints its stack.
Traffic traffic();

}  // namespace rematch::test
