#include "learn/resume/find_model.h"

#include <fmt/core.h>

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "learn/resume/checkpoint_list.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

bool has_model(const std::string& directory) {
  return path_exists(join_path(directory, "config.json")) ||
         path_exists(join_path(directory, "adapter_config.json"));
}

/// A note if no evaluation of the run was better than its start: then that model is the better one.
std::string better_start(const std::string& run_dir, const std::string& checkpoint) {
  try {
    const Json state = read_json_file(join_path(checkpoint, "trainer_state.json"));
    if (state.value("best_global_step", Json()) != 0) return "";
    const Json args = read_json_file(join_path(run_dir, "args.json"));
    return fmt::format("; no evaluation of this run was better than its start: {} is better",
                       args.at("model").at("model").get<std::string>());
  } catch (const std::exception&) {  // reported where the files are needed
    return "";
  }
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
      return {checkpoint, fmt::format("taking {}, the {} checkpoint of {}{}", checkpoint, name,
                                      path, better_start(path, checkpoint))};
  }
  const std::vector<CheckpointName> checkpoints = list_checkpoints(path);
  if (checkpoints.empty() && path_exists(join_path(path, "args.json"))) {
    throw data_error({.error = "this run has no checkpoint",
                      .where = path,
                      .what = "it has saved none, or they were moved or removed",
                      .fix = "name another run, or continue this one with --resume"});
  }
  if (checkpoints.empty()) return {path, ""};
  const std::string& newest = checkpoints.back().path;
  return {newest, fmt::format("taking {}, the newest checkpoint of {}", newest, path)};
}

}  // namespace rematch
