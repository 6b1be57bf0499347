#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

/// Moves what a run left after a step out of the way of a run that continues from there: every
/// checkpoint of a later step into a new directory `abandoned-N` of the run directory, with a copy
/// of the log. Otherwise `latest` could continue the other history. Directories that the run did
/// not save itself (CheckpointName::is_saved_here) stay.
/// @return the directory; nothing when there is no later checkpoint. @throws UserError
/// (environment)
std::optional<std::string> move_later_checkpoints_aside(const std::string& run_dir, int64_t step);

/// The same for a new run in the directory of an earlier one: all checkpoints of the earlier run,
/// with the part of the log that it wrote. Otherwise `save_total_limit` would delete them, and
/// `latest` could continue the earlier run.
/// @param log_bytes  of logging.jsonl that the earlier run wrote
/// @return the directory; nothing without checkpoints and log. @throws UserError (environment)
std::optional<std::string> move_earlier_run_aside(const std::string& run_dir, int64_t log_bytes);

/// Moves a directory that is in the way of a checkpoint, and that the run did not save, into a new
/// `abandoned-N`. @return its new path; @throws UserError (environment)
std::string move_directory_aside(const std::string& run_dir, const std::string& path);

}  // namespace rematch
