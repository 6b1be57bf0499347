#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

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
