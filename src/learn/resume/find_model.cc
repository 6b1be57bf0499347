#include "learn/resume/find_model.h"

#include <fmt/core.h>

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "learn/resume/checkpoint_list.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

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
    const bool is_link = named.filename() == kBestLink || named.filename() == kLastLink;
    const std::string checkpoint = is_link ? follow_link(named.string()) : "";
    return {checkpoint.empty() ? path : checkpoint, ""};
  }
  for (const char* name : {kBestLink, kLastLink}) {
    const std::string checkpoint = follow_link(join_path(path, name));
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
