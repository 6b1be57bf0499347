#include "learn/resume/resume.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/missing_path.h"
#include "learn/resume/run_lock.h"
#include "model/checkpoint/state_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLeftoverPrefix = ".tmp-checkpoint-";
constexpr std::string_view kAside = ".old";

bool has_trainer_state(const std::string& checkpoint) {
  return is_file(join_path(checkpoint, "trainer_state.json"));
}

Problem incomplete_problem(const std::string& checkpoint) {
  return {.error = "a checkpoint is incomplete",
          .where = checkpoint,
          .what = "trainer_state.json is missing",
          .fix = "resume from another checkpoint"};
}

/// The problem of an unusable checkpoint; nullopt if a run can resume from it.
std::optional<Problem> find_problem(const std::string& checkpoint) {
  if (!has_trainer_state(checkpoint)) return incomplete_problem(checkpoint);
  try {
    verify_state_files(checkpoint);
  } catch (const UserError& error) {
    // An unreadable disk does not mean that the checkpoint is damaged.
    if (error.kind() != ErrorKind::kData) throw;
    return error.problems()[0];
  }
  return std::nullopt;
}

/// The checkpoint and process that `.tmp-checkpoint-N-PID[.old]` belongs to.
struct Leftover {
  int64_t step = 0;
  int64_t pid = 0;
  bool is_aside = false;  ///< a finished checkpoint, moved aside to be replaced
};

std::optional<Leftover> parse_leftover(std::string_view name) {
  if (!name.starts_with(kLeftoverPrefix)) return std::nullopt;
  name.remove_prefix(kLeftoverPrefix.size());
  const bool is_aside = name.ends_with(kAside);
  if (is_aside) name.remove_suffix(kAside.size());
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto step = parse_digits(name.substr(0, dash)), pid = parse_digits(name.substr(dash + 1));
  if (!step || !pid || *pid <= 0 || *pid > 0x7FFFFFFF) return std::nullopt;
  return Leftover{.step = *step, .pid = *pid, .is_aside = is_aside};
}

/// The process that wrote a temporary file of the run directory, from its name (write_file_atomic).
std::optional<int64_t> parse_writer(std::string_view name) {
  for (const std::string_view file :
       {"args.json.tmp-", "logging.jsonl.tmp-", "best.tmp-", "last.tmp-"}) {
    if (name.starts_with(file)) return parse_digits(name.substr(file.size()));
  }
  return std::nullopt;
}

bool is_another_living_process(int64_t pid) {
  return pid != ::getpid() && !start_ticks(pid).empty();
}

[[noreturn]] void throw_missing(const std::string& value) {
  const bool exists = path_exists(value);
  throw UserError(exists ? ErrorKind::kConfig : ErrorKind::kEnvironment,
                  {.error = "the checkpoint to resume from does not exist",
                   .where = "training.resume_from_checkpoint",
                   .what = value + (exists ? ": not a directory"
                                           : ": no such directory" + existing_names(value)),
                   .fix = "name a checkpoint-N directory, or `latest`"});
}

}  // namespace

ResumeChoice latest_complete(const std::string& run_dir) {
  std::vector<CheckpointName> checkpoints = list_checkpoints(run_dir);
  std::ranges::reverse(checkpoints);
  ResumeChoice choice;
  std::vector<Problem> damages;
  for (const CheckpointName& checkpoint : checkpoints) {
    // Throws for a checkpoint written with save_only_model: falling back to an older one would
    // silently discard finished work.
    if (has_trainer_state(checkpoint.path) &&
        !is_dir(join_path(checkpoint.path, kTrainingStateDir))) {
      verify_state_files(checkpoint.path);
    }
    const std::optional<Problem> problem = find_problem(checkpoint.path);
    if (!problem) {
      choice.checkpoint = checkpoint.path;
      if (!checkpoint.is_saved_here)
        choice.warnings.push_back(
            fmt::format("{} contains the state after step {} despite its name", checkpoint.path,
                        checkpoint.step));
      return choice;
    }
    choice.warnings.push_back(
        fmt::format("skipped {}: {} ({})", problem->where, problem->error, problem->what));
    if (has_trainer_state(checkpoint.path)) damages.push_back(*problem);
  }
  if (!damages.empty()) throw UserError(ErrorKind::kData, std::move(damages));
  return choice;
}

ResumeChoice resolve_resume(const std::string& value, const std::string& run_dir) {
  if (value == "latest") return latest_complete(run_dir);
  std::string path = value;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!is_dir(path)) throw_missing(path);
  if (const std::string target = follow_link(path); !target.empty()) path = target;
  const std::vector<CheckpointName> inside = list_checkpoints(path);
  if (!inside.empty() && !has_trainer_state(path)) {
    throw config_error({.error = "a run directory is not a checkpoint",
                        .where = "training.resume_from_checkpoint",
                        .what = fmt::format("{} holds {} checkpoints, the newest is {}", path,
                                            inside.size(), inside.back().path),
                        .fix = fmt::format("choose one of them, e.g. {}", inside.back().path)});
  }
  verify_state_files(path);
  if (!has_trainer_state(path)) throw UserError(ErrorKind::kData, incomplete_problem(path));
  ResumeChoice choice{.checkpoint = path};
  const std::vector<CheckpointName> siblings = list_checkpoints(run_dir),
                                    saved = list_saved_checkpoints(run_dir);
  const auto same = [&](const CheckpointName& checkpoint) {
    std::error_code error;
    return fs::equivalent(checkpoint.path, path, error);
  };
  const auto chosen = std::ranges::find_if(siblings, same);
  if (chosen != siblings.end() && !saved.empty() && chosen->step < saved.back().step) {
    choice.warnings.push_back(fmt::format(
        "{} is older than {}; when training continues, newer checkpoints are moved aside",
        chosen->path, saved.back().path));
  }
  return choice;
}

Strings remove_leftovers(const std::string& run_dir) {
  Strings done;
  for (const std::string& name : list_names(run_dir)) {
    const std::string path = join_path(run_dir, name);
    std::error_code error;
    if (const std::optional<int64_t> writer = parse_writer(name);
        writer && !is_another_living_process(*writer)) {
      if (fs::remove(path, error)) done.push_back(name);
      continue;
    }
    const std::optional<Leftover> leftover = parse_leftover(name);
    if (!leftover || is_another_living_process(leftover->pid)) continue;
    const std::string home =
        join_path(run_dir, fmt::format("{}{}", kCheckpointPrefix, leftover->step));
    if (leftover->is_aside && !path_exists(home)) {
      fs::rename(path, home, error);
    } else {
      fs::remove_all(path, error);
    }
    if (!error) done.push_back(name);
  }
  return done;
}

}  // namespace rematch
