#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// A `checkpoint-N` directory.
struct CheckpointName {
  int64_t step = 0;
  std::string path;
};

/// Every directory `checkpoint-N` of a run, by ascending N, complete or not; none when the run directory does not exist.
std::vector<CheckpointName> list_checkpoints(const std::string& run_dir);

/// Where a run goes on.
struct ResumeChoice {
  std::optional<std::string> checkpoint;  ///< none: there is nothing to resume, the run starts anew
  std::vector<std::string> warnings;      ///< what was passed over and why; what lies ahead of the choice
};

/// The newest checkpoint of a run that can be resumed from. Damaged and incomplete ones are passed over with a warning that says why.
/// @throws UserError (data) when the newest complete one was written with `save_only_model: true`, or when all of them are damaged:
///         starting anew would overwrite them. Cost: reads the files of the chosen checkpoint once, to verify their hashes.
ResumeChoice latest_complete(const std::string& run_dir);

/// What `training.resume_from_checkpoint` means.
/// @param value    "latest" or the path of a checkpoint directory, relative to the current directory
/// @throws UserError (config) when there is no such directory, naming near ones; (data) as verify_state_files
ResumeChoice resolve_resume(const std::string& value, const std::string& run_dir);

/// Removes what killed saves and rotations left in a run directory (`.tmp-checkpoint-N-PID`, `args.json.tmp-PID`, `logging.jsonl.tmp-PID`).
/// Call it once, before the run's first save.
/// Leftovers of processes that live are kept; this process itself has none yet, so those with its number come from an earlier one.
/// A checkpoint that was moved aside and not yet replaced when its process died comes back under its name.
/// @return names of what was removed or brought back
std::vector<std::string> remove_leftovers(const std::string& run_dir);

}  // namespace rematch
