#pragma once
#include <cstdint>
#include <string>

namespace rematch {

inline constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

/// Memory of a machine or device in bytes.
struct MemoryBytes {
  int64_t total = 0;
  int64_t available = 0;
};

/// Total and available memory of this machine, within the limit of its control group (containers);
/// zeros where unknown.
MemoryBytes host_memory();

/// Name of this machine.
std::string host_name();

}  // namespace rematch
