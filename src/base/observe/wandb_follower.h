#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

namespace rematch {

/// The warning that `report_to: wandb` is ignored because `python3` has no wandb; nullopt if it
/// has. Cost: starts Python once
std::optional<std::string> missing_wandb();

/// A Python process (`wandb_follower.py`) that sends every new line of a run's `logging.jsonl` to
/// wandb. The run never waits for it: if it is slow, hangs or dies, only wandb lacks lines. When
/// the run ends, in whatever way, it sends the rest of the log and exits. Its output is in
/// `wandb.log` of the run directory.
class WandbFollower {
 public:
  /// Starts it at the current end of the log, which must exist. A resumed run keeps its `wandb_id`.
  /// @throws UserError (environment) when the process cannot be started
  WandbFollower(const std::string& run_dir, const std::string& run_name);
  /// Closes its standard input, the sign that the log is complete. Does not wait.
  ~WandbFollower();
  WandbFollower(const WandbFollower&) = delete;
  WandbFollower& operator=(const WandbFollower&) = delete;

  /// A warning if it ended before the run.
  std::optional<std::string> problem() const;

 private:
  std::string log_path_;
  int end_of_run_ = -1;  ///< pipe to its standard input; also closed when this process dies
  pid_t pid_ = -1;
};

}  // namespace rematch
