#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// Before the step in the name of a checkpoint's directory.
inline constexpr std::string_view kCheckpointPrefix = "checkpoint-";

/// Parses a number of at most 17 digits.
std::optional<int64_t> parse_digits(std::string_view text);
/// The sorted names in a directory; none if it cannot be read.
std::vector<std::string> list_names(const std::string& directory);

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

}  // namespace rematch
