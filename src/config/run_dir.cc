#include "config/run_dir.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>

#include "base/file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// Number after the largest `vN-…` in a directory; 0 when there is none.
int next_version(const std::string& directory) {
  int next = 0;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    int number = -1;
    if (name.size() < 3 || name[0] != 'v') continue;
    const auto [after, failed] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    const bool is_version = failed == std::errc() && after != name.data() + name.size() && *after == '-' && number >= 0 && number < 1000000;
    if (is_version) next = std::max(next, number + 1);
  }
  return next;
}

}  // namespace

std::string run_directory(const std::string& output_dir, bool add_version, const std::optional<std::string>& run_name) {
  std::string path = output_dir;
  if (add_version) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    path = join_path(path, fmt::format("v{}-{:%Y%m%d-%H%M%S}", next_version(output_dir), local));
  }
  return run_name && !run_name->empty() ? join_path(path, *run_name) : path;
}

}  // namespace rematch
