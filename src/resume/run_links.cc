#include "resume/run_links.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "resume/resume.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBest = "best";
constexpr const char* kLast = "last";

/// `name` if the run directory contains such a directory; else empty.
std::string existing_name(const std::string& run_dir, const std::string& name) {
  std::error_code error;
  return !name.empty() && fs::is_directory(join_path(run_dir, name), error) ? name : "";
}

/// @param target  empty = no link. @return a warning; empty on success
std::string update_link(const std::string& run_dir, const char* name, const std::string& target) {
  const std::string path = join_path(run_dir, name);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status) && !fs::is_symlink(status)) {
    return target.empty()
               ? ""
               : fmt::format("{} is not linked to {}: something else has that name", path, target);
  }
  if (target.empty()) {
    fs::remove(path, error);
    return "";
  }
  if (fs::is_symlink(status) && fs::read_symlink(path, error) == target) return "";
  const std::string made = fmt::format("{}.tmp-{}", path, ::getpid());
  fs::remove(made, error);
  fs::create_directory_symlink(target, made, error);
  if (!error) fs::rename(made, path, error);
  if (!error) return "";
  const std::string why = error.message();
  fs::remove(made, error);
  return fmt::format("{} is not linked to {}: {}", path, target, why);
}

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

std::vector<std::string> update_run_links(const std::string& run_dir, const TrainerState& state,
                                          int64_t last_step) {
  const std::string last = fmt::format("checkpoint-{}", last_step);
  // Only the name counts: the run that wrote the state may have used another path.
  const std::string best = fs::path(state.best_model_checkpoint.value_or("")).filename().string();
  std::vector<std::string> warnings{update_link(run_dir, kLast, existing_name(run_dir, last)),
                                    update_link(run_dir, kBest, existing_name(run_dir, best))};
  std::erase(warnings, "");
  return warnings;
}

NamedModel find_model(const std::string& path) {
  if (has_model(path)) {
    // Scores must name the checkpoint, because links change.
    const fs::path named = fs::path(path + "/").parent_path();
    for (const char* name : {kBest, kLast}) {
      if (named.filename() != name) continue;
      const std::string run = named.has_parent_path() ? named.parent_path().string() : ".";
      if (const std::string checkpoint = resolve_link(run, name); !checkpoint.empty())
        return {checkpoint, ""};
    }
    return {path, ""};
  }
  for (const char* name : {kBest, kLast}) {
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
