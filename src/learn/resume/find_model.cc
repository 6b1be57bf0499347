#include "learn/resume/find_model.h"

#include <fmt/core.h>

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "learn/resume/checkpoint_list.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// Target of a link as a path in the run directory; empty if it is not a directory.
std::string resolve_link(const std::string& run_dir, const char* name) {
  const std::string path = join_path(run_dir, name);
  std::error_code error;
  if (!fs::is_symlink(path, error) || !fs::is_directory(path, error)) return "";
  const fs::path target = fs::read_symlink(path, error);
  return target.is_absolute() ? target.string() : join_path(run_dir, target.string());
}

bool has_model(const std::string& directory) {
  std::error_code error;
  return fs::exists(join_path(directory, "config.json"), error) ||
         fs::exists(join_path(directory, "adapter_config.json"), error);
}

}  // namespace

NamedModel find_model(const std::string& path) {
  if (has_model(path)) {
    // Scores must name the checkpoint, because links change.
    const fs::path named = fs::path(path + "/").parent_path();
    for (const char* name : {kBestLink, kLastLink}) {
      if (named.filename() != name) continue;
      const std::string run = named.has_parent_path() ? named.parent_path().string() : ".";
      if (const std::string checkpoint = resolve_link(run, name); !checkpoint.empty())
        return {checkpoint, ""};
    }
    return {path, ""};
  }
  for (const char* name : {kBestLink, kLastLink}) {
    const std::string checkpoint = resolve_link(path, name);
    if (!checkpoint.empty())
      return {checkpoint,
              fmt::format("taking {}, the {} checkpoint of {}", checkpoint, name, path)};
  }
  const std::vector<CheckpointName> checkpoints = list_checkpoints(path);
  if (checkpoints.empty()) return {path, ""};
  const std::string& newest = checkpoints.back().path;
  return {newest, fmt::format("taking {}, the newest checkpoint of {}", newest, path)};
}

}  // namespace rematch
