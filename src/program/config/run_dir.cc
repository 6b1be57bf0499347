#include "program/config/run_dir.h"

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

/// A `vN-…` directory; `number` is N, or -1 for other names.
struct Version {
  int number = -1;
  std::string path;
};

Version parse_version(const fs::path& path) {
  const std::string name = path.filename().string();
  int number = -1;
  if (name.size() < 3 || name[0] != 'v') return {};
  const auto [after, failed] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  const bool is_version = failed == std::errc() && after != name.data() + name.size() &&
                          *after == '-' && number >= 0 && number < 1000000;
  return is_version ? Version{number, path.string()} : Version{};
}

bool has_checkpoint(const std::string& run_dir) {
  std::error_code error;
  for (fs::directory_iterator entry(run_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().rfind("checkpoint-", 0) == 0) return true;
  }
  return false;
}

std::string append_run_name(const std::string& path, const std::optional<std::string>& run_name) {
  return run_name && !run_name->empty() ? join_path(path, *run_name) : path;
}

}  // namespace

std::string run_directory(const OutputSettings& output, bool resumes_latest) {
  if (!output.add_version) return append_run_name(output.output_dir, output.run_name);
  int next = 0;
  Version newest;
  std::error_code error;
  for (fs::directory_iterator entry(output.output_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    const Version version = parse_version(entry->path());
    next = std::max(next, version.number + 1);
    if (version.number > newest.number &&
        has_checkpoint(append_run_name(version.path, output.run_name)))
      newest = version;
  }
  if (resumes_latest && newest.number >= 0) return append_run_name(newest.path, output.run_name);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return append_run_name(
      join_path(output.output_dir, fmt::format("v{}-{:%Y%m%d-%H%M%S}", next, local)),
      output.run_name);
}

}  // namespace rematch
