#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// A `checkpoint-N` directory.
struct CheckpointName {
  int64_t step = 0;  ///< of its trainer state; N where that cannot be read
  std::string path;
  /// false for a directory that the run did not save under this name: without a whole trainer
  /// state, or with that of another step, as a renamed copy has
  bool is_saved_here = false;
};

/// Every directory `checkpoint-N` of a run, by ascending step, complete or not; none when the run
/// directory does not exist.
std::vector<CheckpointName> list_checkpoints(const std::string& run_dir);
/// Those that the run saved itself, which alone it may move or delete.
std::vector<CheckpointName> list_saved_checkpoints(const std::string& run_dir);

/// Where a run resumes.
struct ResumeChoice {
  std::optional<std::string> checkpoint;  ///< none: there is nothing to resume, a new run starts
  /// what was skipped and why; newer checkpoints than the choice
  std::vector<std::string> warnings;
};

/// The newest checkpoint of a run that can be resumed from. Damaged and incomplete ones are
/// skipped, with a warning that says why.
/// @throws UserError (data) when the newest complete one is written with `save_only_model: true`,
/// or when all of them are damaged:
///         a new run would overwrite them. Cost: reads the files of the chosen checkpoint once, to
///         verify their hashes.
ResumeChoice latest_complete(const std::string& run_dir);

/// What `training.resume_from_checkpoint` means.
/// @param value    "latest" or the path of a checkpoint directory, relative to the current
/// directory
/// @throws UserError (config) when the directory does not exist, with similar names; (data) as
/// verify_state_files
ResumeChoice resolve_resume(const std::string& value, const std::string& run_dir);

/// Removes leftovers of killed saves and rotations from a run directory (`.tmp-checkpoint-N-PID`,
/// `args.json.tmp-PID`, `logging.jsonl.tmp-PID`, `best.tmp-PID`, `last.tmp-PID`). Call it once,
/// before the run's first save. Leftovers of live processes are kept; this process has none yet, so
/// those with its number come from an earlier one. A checkpoint that was moved aside but not
/// replaced when its process died is restored under its name.
/// @return names of what is removed or restored
std::vector<std::string> remove_leftovers(const std::string& run_dir);

}  // namespace rematch
