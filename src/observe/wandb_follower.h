#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

namespace rematch {

/// The warning that `report_to: wandb` is ignored because the `python3` of the PATH has no wandb;
/// nullopt if it has. Cost: starts Python once
std::optional<std::string> missing_wandb();

/// A process of the user's Python (`wandb_follower.py`) that reads `logging.jsonl` of a run as it
/// grows and sends every line to wandb. The run never waits for it: if it is slow, hangs or dies,
/// only wandb lacks lines. However the run ends, it sends the rest of the log and exits. Its output
/// is in `wandb.log` of the run directory.
class WandbFollower {
 public:
  /// Starts it at the current end of the log, which exists; a resumed run keeps its id
  /// (`wandb_id`).
  /// @throws UserError (environment) when the process cannot be started
  WandbFollower(const std::string& run_dir, const std::string& run_name);
  /// Closes its standard input, which says that the log is complete; does not wait.
  ~WandbFollower();
  WandbFollower(const WandbFollower&) = delete;
  WandbFollower& operator=(const WandbFollower&) = delete;

  /// A warning if it has ended before the run.
  std::optional<std::string> problem() const;

 private:
  std::string log_path_;
  int end_of_run_ = -1;  ///< the end of this process closes it, too
  pid_t pid_ = -1;
};

}  // namespace rematch
