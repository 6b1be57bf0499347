#pragma once
#include <optional>
#include <string>
#include <vector>

#include "learn/resume/checkpoint_list.h"

namespace rematch {

/// The checkpoint that a run resumes from.
struct ResumeChoice {
  std::optional<std::string> checkpoint;  ///< nullopt: a new run starts
  /// about skipped checkpoints, and about newer ones than the choice
  Strings warnings;
};

/// The newest usable checkpoint of a run. Skips damaged and incomplete ones, with a warning that
/// says why.
/// @throws UserError (data) if the newest complete one was written with `save_only_model: true`, or
/// all are damaged (a new run would overwrite them). Cost: reads the files of the chosen checkpoint
/// once, to verify their hashes.
ResumeChoice latest_complete(const std::string& run_dir);

/// Resolves `training.resume_from_checkpoint`.
/// @param value    "latest" or the path of a checkpoint directory, relative to the current
/// directory
/// @throws UserError (config) if the directory does not exist, with similar names; (data) as
/// verify_state_files
ResumeChoice resolve_resume(const std::string& value, const std::string& run_dir);

/// Removes leftovers of killed saves and rotations from a run directory (`.tmp-checkpoint-N-PID`,
/// `args.json.tmp-PID`, `logging.jsonl.tmp-PID`, `best.tmp-PID`, `last.tmp-PID`). Call it once,
/// before the run's first save: leftovers with this process's number then come from an earlier
/// process. Keeps those of other live processes. Restores a checkpoint that was moved aside and not
/// replaced because its process died.
/// @return names of removed and restored files and directories
Strings remove_leftovers(const std::string& run_dir);

}  // namespace rematch
