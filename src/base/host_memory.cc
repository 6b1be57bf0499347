#include "base/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

namespace rematch {
namespace {

std::optional<int64_t> number_in(const char* path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The number after `name` in a file of "name number [unit]" lines; 0 if absent.
int64_t number_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string key, rest;
  int64_t number = 0;
  while (file >> key >> number) {
    if (key == name) return number;
    std::getline(file, rest);
  }
  return 0;
}

}  // namespace

MemoryBytes host_memory() {
  MemoryBytes memory{.total = number_of("/proc/meminfo", "MemTotal:") * 1024,
                     .available = number_of("/proc/meminfo", "MemAvailable:") * 1024};
  // A container has its own limit; its page cache counts as available.
  const auto limit = number_in("/sys/fs/cgroup/memory.max"),
             used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return memory;
  const int64_t taken = *used - number_of("/sys/fs/cgroup/memory.stat", "inactive_file");
  if (memory.total > 0) memory.total = std::min(memory.total, *limit);
  if (memory.available > 0)
    memory.available = std::min(memory.available, std::max<int64_t>(0, *limit - taken));
  return memory;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace rematch
