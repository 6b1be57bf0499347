#include "resume/abandoned.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "resume/resume.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

std::string new_directory(const std::string& run_dir) {
  for (int64_t number = 1;; ++number) {
    std::string path = join_path(run_dir, fmt::format("abandoned-{}", number));
    std::error_code error;
    if (fs::exists(path, error)) continue;
    make_directories(path);
    return path;
  }
}

void move_into(const std::string& directory, const std::string& path) {
  std::error_code error;
  fs::rename(path, join_path(directory, fs::path(path).filename().string()), error);
  if (!error) return;
  throw UserError(
      ErrorKind::kEnvironment,
      {.error = fmt::format("cannot move {} aside", path),
       .where = path,
       .what = error.message(),
       .fix =
           "move the checkpoints after the one you resume from out of the run directory yourself"});
}

}  // namespace

std::optional<std::string> move_later_checkpoints_aside(const std::string& run_dir, int64_t step) {
  std::vector<CheckpointName> checkpoints = list_checkpoints(run_dir);
  std::erase_if(checkpoints,
                [step](const CheckpointName& checkpoint) { return checkpoint.step <= step; });
  if (checkpoints.empty()) return std::nullopt;
  const std::string directory = new_directory(run_dir);
  const std::string log = join_path(run_dir, "logging.jsonl");
  std::error_code error;
  if (fs::is_regular_file(log, error))
    write_file_atomic(join_path(directory, "logging.jsonl"), read_file(log));
  // The newest first: a process killed in between leaves one history, a shorter one.
  std::reverse(checkpoints.begin(), checkpoints.end());
  for (const CheckpointName& checkpoint : checkpoints) move_into(directory, checkpoint.path);
  return directory;
}

}  // namespace rematch
