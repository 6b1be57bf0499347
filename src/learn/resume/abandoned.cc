#include "learn/resume/abandoned.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "learn/resume/checkpoint_list.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

std::string make_abandoned_dir(const std::string& run_dir) {
  for (int64_t number = 1;; ++number) {
    std::string path = join_path(run_dir, fmt::format("abandoned-{}", number));
    std::error_code error;
    if (fs::exists(path, error)) continue;
    make_directories(path);
    return path;
  }
}

/// Returns the new path.
std::string move_into(const std::string& directory, const std::string& path) {
  std::error_code error;
  std::string moved = join_path(directory, fs::path(path).filename().string());
  fs::rename(path, moved, error);
  if (!error) return moved;
  throw UserError(
      ErrorKind::kEnvironment,
      {.error = fmt::format("cannot move {} aside", path),
       .where = path,
       .what = error.message(),
       .fix = "move it out of the run directory yourself, or set another training.run_name"});
}

}  // namespace

std::optional<std::string> move_later_checkpoints_aside(const std::string& run_dir, int64_t step) {
  std::vector<CheckpointName> checkpoints = list_saved_checkpoints(run_dir);
  std::erase_if(checkpoints,
                [step](const CheckpointName& checkpoint) { return checkpoint.step <= step; });
  if (checkpoints.empty()) return std::nullopt;
  const std::string directory = make_abandoned_dir(run_dir);
  const std::string log = join_path(run_dir, "logging.jsonl");
  std::error_code error;
  if (fs::is_regular_file(log, error))
    write_file_atomic(join_path(directory, "logging.jsonl"), read_file(log));
  // The newest first, so that a process killed in between leaves a shorter but valid history.
  for (auto each = checkpoints.rbegin(); each != checkpoints.rend(); ++each)
    move_into(directory, each->path);
  return directory;
}

std::string move_directory_aside(const std::string& run_dir, const std::string& path) {
  return move_into(make_abandoned_dir(run_dir), path);
}

}  // namespace rematch
