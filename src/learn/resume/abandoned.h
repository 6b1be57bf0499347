#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

/// For a run that continues from `step`: moves every checkpoint of a later step to a new directory
/// `abandoned-N` of the run directory, with a copy of the log. Otherwise `latest` could continue
/// the old history. Does not move directories that the run did not save
/// (CheckpointName::is_saved_here).
/// @return the new directory; nullopt without a later checkpoint.
/// @throws UserError (environment)
std::optional<std::string> move_later_checkpoints_aside(const std::string& run_dir, int64_t step);

/// Moves a directory that has a checkpoint's name but was not saved by the run to a new
/// `abandoned-N`.
/// @return its new path.
/// @throws UserError (environment)
std::string move_directory_aside(const std::string& run_dir, const std::string& path);

}  // namespace rematch
