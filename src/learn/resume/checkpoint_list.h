#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Before the step in the name of a checkpoint's directory.
inline constexpr std::string_view kCheckpointPrefix = "checkpoint-";

/// Parses a number of at most 17 digits.
std::optional<int64_t> parse_digits(std::string_view text);
/// The sorted names in a directory; none if it cannot be read.
Strings list_names(const std::string& directory);

/// The target of a link to a directory, as a path; empty for anything else.
std::string follow_link(const std::string& path);

/// A `checkpoint-N` directory.
struct CheckpointName {
  int64_t step = 0;  ///< of its trainer state; N if that is unreadable
  std::string path;
  /// false for a directory that the run did not save under this name: its trainer state is
  /// incomplete or from another step, as in a renamed copy
  bool is_saved_here = false;
};

/// Every directory `checkpoint-N` of a run, complete or not, by ascending step; none if the run
/// directory does not exist.
std::vector<CheckpointName> list_checkpoints(const std::string& run_dir);
/// The checkpoints that the run saved itself; it must not move or delete any others.
std::vector<CheckpointName> list_saved_checkpoints(const std::string& run_dir);

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
