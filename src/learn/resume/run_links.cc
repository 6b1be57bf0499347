#include "learn/resume/run_links.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// `name` if the run directory contains such a directory; else empty.
std::string existing_name(const std::string& run_dir, const std::string& name) {
  return !name.empty() && is_dir(join_path(run_dir, name)) ? name : "";
}

/// @param target  empty = no link.
/// @return a warning; empty on success
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

}  // namespace

Strings update_run_links(const std::string& run_dir, const RunProgress& progress,
                         int64_t last_step) {
  const std::string last = fmt::format("checkpoint-{}", last_step);
  // Only the name counts: the run that wrote the state may have used another path.
  const std::string best =
      fs::path(progress.best_model_checkpoint.value_or("")).filename().string();
  Strings warnings{update_link(run_dir, kLastLink, existing_name(run_dir, last)),
                   update_link(run_dir, kBestLink, existing_name(run_dir, best))};
  std::erase(warnings, "");
  return warnings;
}

}  // namespace rematch
