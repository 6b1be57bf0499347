#pragma once
#include <optional>
#include <string>

namespace rematch {

/// What the name of a run directory is made of.
struct RunDirOptions {
  std::string output_dir;
  bool add_version = false;             ///< `vN-YYYYMMDD-HHMMSS` between the two, N one above the largest there is
  std::optional<std::string> run_name;  ///< none or empty: no level of its own
  bool go_on =
      false;  ///< with add_version: the newest version that holds a checkpoint of this run, when there is one (`resume_from_checkpoint: latest`)
};

/// Where a run writes: output_dir[/version][/run_name]. Creates nothing.
std::string run_directory(const RunDirOptions& options);

}  // namespace rematch
