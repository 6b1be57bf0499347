#include "learn/resume/checkpoint_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// True if the file ends like a complete trainer_state.json: not truncated and not zeros.
bool is_complete(std::ifstream& file) {
  std::string tail(3, '\0');
  file.clear();
  file.seekg(-static_cast<std::streamoff>(tail.size()), std::ios::end);
  if (!file.read(tail.data(), static_cast<std::streamsize>(tail.size()))) return false;
  return tail == "\n}\n" || tail.ends_with("\n}");
}

/// Reads `global_step` of a trainer_state.json, which comes before the long history; nullopt if the
/// file is unreadable or incomplete.
std::optional<int64_t> read_step(const std::string& checkpoint) {
  constexpr std::string_view kKey = "\"global_step\":";
  std::ifstream file(join_path(checkpoint, "trainer_state.json"), std::ios::binary);
  std::string head(size_t{1} << 16, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(file.gcount());
  const size_t found = head.find(kKey);
  if (found == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(head).substr(found + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (!is_complete(file)) return std::nullopt;
  return parse_digits(rest.substr(0, rest.find_first_not_of("0123456789")));
}

std::string make_abandoned_dir(const std::string& run_dir) {
  for (int64_t number = 1;; ++number) {
    std::string path = join_path(run_dir, fmt::format("abandoned-{}", number));
    if (path_exists(path)) continue;
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
  throw environment_error(
      {.error = fmt::format("cannot move {} aside", path),
       .where = path,
       .what = error.message(),
       .fix = "move it out of the run directory yourself, or set another training.run_name"});
}

/// The step of an evaluated checkpoint by the name of a file in `eval/`; 0 for other weights.
int64_t evaluated_step(const std::string& name) {
  return name.starts_with(kCheckpointPrefix) ? std::atoll(&name[kCheckpointPrefix.size()]) : 0;
}

/// Moves evaluations, and the results of the last `rematch eval`.
void move_evaluations(const std::string& directory, const std::string& run_dir,
                      const Strings& names) {
  const std::string results = join_path(run_dir, "eval_results.json"),
                    to = join_path(directory, "eval");
  if (names.empty()) return;
  make_directories(to);
  if (is_file(results)) move_into(directory, results);
  for (const std::string& name : names) move_into(to, join_path(run_dir, "eval/" + name));
}

}  // namespace

std::optional<int64_t> parse_digits(std::string_view text) {
  if (text.empty() || text.size() > 17 ||
      text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::stoll(std::string(text));
}

Strings list_names(const std::string& directory) {
  Strings names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string follow_link(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error) || !is_dir(path)) return "";
  return (fs::path(path).parent_path() / fs::read_symlink(path, error)).string();
}

std::vector<CheckpointName> list_checkpoints(const std::string& run_dir) {
  std::vector<CheckpointName> checkpoints;
  for (const std::string& name : list_names(run_dir)) {
    if (!name.starts_with(kCheckpointPrefix)) continue;
    const std::optional<int64_t> number =
        parse_digits(std::string_view(name).substr(kCheckpointPrefix.size()));
    const std::string path = join_path(run_dir, name);
    if (!number || !is_dir(path)) continue;
    const std::optional<int64_t> step = read_step(path);
    checkpoints.push_back(
        {.step = step.value_or(*number), .path = path, .is_saved_here = step == number});
  }
  // If two have the same step, the one that was saved here counts as newer.
  std::ranges::sort(checkpoints, {},
                    [](const auto& one) { return std::pair(one.step, one.is_saved_here); });
  return checkpoints;
}

std::vector<CheckpointName> list_saved_checkpoints(const std::string& run_dir) {
  std::vector<CheckpointName> checkpoints = list_checkpoints(run_dir);
  std::erase_if(checkpoints, [](const CheckpointName& one) { return !one.is_saved_here; });
  return checkpoints;
}

std::optional<std::string> move_later_checkpoints_aside(const std::string& run_dir, int64_t step) {
  std::vector<CheckpointName> checkpoints = list_saved_checkpoints(run_dir);
  std::erase_if(checkpoints,
                [step](const CheckpointName& checkpoint) { return checkpoint.step <= step; });
  Strings evaluations = list_names(join_path(run_dir, "eval"));
  std::erase_if(evaluations, [step](const auto& name) { return evaluated_step(name) <= step; });
  if (checkpoints.empty() && evaluations.empty()) return std::nullopt;
  std::string directory = make_abandoned_dir(run_dir);
  const std::string log = join_path(run_dir, "logging.jsonl");
  if (is_file(log)) write_file_atomic(join_path(directory, "logging.jsonl"), read_file(log));
  // The newest first, so that a process killed in between leaves a shorter but valid history.
  for (auto each = checkpoints.rbegin(); each != checkpoints.rend(); ++each)
    move_into(directory, each->path);
  move_evaluations(directory, run_dir, evaluations);
  return directory;
}

std::string move_directory_aside(const std::string& run_dir, const std::string& path) {
  return move_into(make_abandoned_dir(run_dir), path);
}

}  // namespace rematch
