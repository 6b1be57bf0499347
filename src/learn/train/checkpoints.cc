#include "learn/train/checkpoints.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "engine/ranks/gather.h"
#include "learn/resume/checkpoint_list.h"
#include "learn/resume/run_links.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

}  // namespace

Checkpoints::Checkpoints(Options options, Writer write_model)
    : options_(std::move(options)), write_model_(std::move(write_model)) {}

std::string Checkpoints::checkpoint_path(int64_t step) const {
  return join_path(options_.run_dir, fmt::format("{}{}", kCheckpointPrefix, step));
}

std::string Checkpoints::save(TrainerState& state, const Writer& write_state, const Writer& seal,
                              const std::optional<ScoreCalibration>& calibration) {
  RunProgress& progress = state.progress;
  const std::string path = checkpoint_path(progress.global_step);
  const std::optional<std::string> best_before = progress.best_model_checkpoint;
  if (progress.best_global_step == progress.global_step) progress.best_model_checkpoint = path;
  try {
    write(path, state, write_state, seal, calibration);
  } catch (...) {
    progress.best_model_checkpoint = best_before;
    throw;
  }
  if (options_.group->rank() == 0) {
    link(progress);
    rotate(progress);
  }
  return path;
}

void Checkpoints::link(const RunProgress& progress) const {
  for (const std::string& text :
       update_run_links(options_.run_dir, progress, progress.global_step)) {
    if (options_.warn) options_.warn(text);
  }
}

void Checkpoints::write(const std::string& path, const TrainerState& state,
                        const Writer& write_state, const Writer& seal,
                        const std::optional<ScoreCalibration>& calibration) {
  Group& group = *options_.group;
  const bool is_first = group.rank() == 0;
  std::optional<StagedDirectory> staged;
  if (is_first) staged.emplace(path);
  const std::string directory = from_first_rank(group, is_first ? staged->path() : std::string());
  if (is_first) {
    write_model_(directory);
    if (calibration) calibration->write(directory, state.progress.global_step);
    write_trainer_state(state, directory + "/trainer_state.json");
  }
  if (!options_.save_only_model) write_state(directory);

  group.barrier();  // all parts are there
  if (is_first) {
    if (seal && !options_.save_only_model) seal(directory);  // last: its manifest covers all files
    make_room(path);
    staged->commit();
  }
  group.barrier();  // the checkpoint is complete
}

void Checkpoints::make_room(const std::string& path) {
  if (!path_exists(path)) return;
  const std::vector<CheckpointName> saved = list_saved_checkpoints(options_.run_dir);
  const bool is_ours =
      std::ranges::any_of(saved, [&](const auto& checkpoint) { return checkpoint.path == path; });
  if (!is_ours) move_directory_aside(options_.run_dir, path);
}

std::vector<int64_t> Checkpoints::existing_steps() const {
  std::vector<int64_t> steps;
  for (const CheckpointName& checkpoint : list_saved_checkpoints(options_.run_dir)) {
    if (checkpoint.path == checkpoint_path(checkpoint.step)) steps.push_back(checkpoint.step);
  }
  return steps;
}

void Checkpoints::rotate(const RunProgress& progress) const {
  if (options_.save_total_limit <= 0) return;
  const std::vector<int64_t> steps = existing_steps();
  int64_t excess = std::ssize(steps) - options_.save_total_limit;
  for (const int64_t step : steps) {
    if (excess <= 0) break;
    if (step == progress.global_step || is_best(progress, step)) continue;
    remove(step);
    --excess;
  }
}

bool Checkpoints::is_best(const RunProgress& progress, int64_t step) const {
  Strings best = progress.kept_checkpoints;
  if (progress.best_model_checkpoint) best.push_back(*progress.best_model_checkpoint);
  // Compare names only: another process may have written the run directory differently.
  return std::ranges::any_of(best, [&](const std::string& path) {
    return fs::path(path).filename() == fs::path(checkpoint_path(step)).filename();
  });
}

void Checkpoints::remove(int64_t step) const {
  // Rename first: a process killed while deleting must not leave a partial checkpoint-N.
  const std::string doomed =
      fmt::format("{}/.tmp-{}{}-{}", options_.run_dir, kCheckpointPrefix, step, ::getpid());
  std::error_code error;
  fs::rename(checkpoint_path(step), doomed, error);
  fs::remove_all(error ? checkpoint_path(step) : doomed, error);
}

}  // namespace rematch
