#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

namespace rematch {

/// Why `report_to: wandb` is ignored, a warning: the `python3` of the PATH has no wandb. Cost: one
/// start of Python
std::optional<std::string> missing_wandb();

/// A process of the user's Python that reads `logging.jsonl` of a run as it grows and gives every
/// line to wandb. The run writes nothing to it and never waits: whether it is slow, hangs or dies,
/// only wandb lacks lines. It finishes on its own after the run has ended, however that was, with
/// what is left of the log. What it says is in `wandb.log` of the run directory.
class WandbFollower {
 public:
  /// Starts it at the present end of the log, whose file exists; a resumed run goes on under its id
  /// (`wandb_id`).
  /// @throws UserError (environment) when the process cannot be started
  WandbFollower(const std::string& run_dir, const std::string& run_name);
  /// Tells it that the log is complete; does not wait.
  ~WandbFollower();
  WandbFollower(const WandbFollower&) = delete;
  WandbFollower& operator=(const WandbFollower&) = delete;

  /// A warning when it has ended before the run.
  std::optional<std::string> problem() const;

 private:
  std::string log_path_;
  int end_of_run_ = -1;  ///< closed by this process's end, too
  pid_t pid_ = -1;
};

}  // namespace rematch
