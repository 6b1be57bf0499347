#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/observe/sinks.h"
#include "base/observe/wandb_follower.h"
#include "learn/train/run_log.h"
#include "program/assembly/job.h"
#include "tools/monitor/monitor_dump.h"

namespace rematch {

/// The outputs of a run: terminal progress, logging.jsonl, TensorBoard, pictures of rollouts,
/// wandb. Only rank 0 writes.
class Observers {
 public:
  /// The job must outlive it. Opens no file yet.
  explicit Observers(const Job& job);

  RunLog& log() { return log_; }
  /// Opens the files, on rank 0.
  /// @param resumed_step  log lines after this step, left by a killed run, are removed; nullopt
  /// keeps all.
  /// @throws UserError (environment)
  void open(std::optional<int64_t> resumed_step);
  /// Shows the scored rollouts of a window.
  /// @param step  optimizer step, from 1
  void show(int64_t step, const std::vector<ScoredRollout>& scored);
  /// Reports the time spent on pictures and problems of wandb.
  /// @param seconds  duration of the run
  void close(double seconds);

 private:
  const Job& job_;
  RunLog log_;
  std::unique_ptr<MonitorDump> monitor_;
  std::unique_ptr<const WandbFollower> wandb_;
};

}  // namespace rematch
