#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Outputs of a run.
struct OutputSettings {
  std::string output_dir = "output";
  /// adds a level `vN-YYYYMMDD-HHMMSS` before run_name, N one above the largest existing one
  bool add_version = false;
  std::optional<std::string> run_name;  ///< none or empty: no extra level
  std::string logging_dir;              ///< directory of TensorBoard events
  Strings report_to{"tensorboard"};
  /// output_dir[/vN-date-time][/run_name], from run_directory(); not a key
  std::string run_dir;

  /// True if `report_to` has this destination.
  bool reports_to(const std::string& name) const { return contains(report_to, name); }

  bool operator==(const OutputSettings&) const = default;
};

/// The checkpoints of a run, and the one to resume from (BEHAVIOUR 17).
struct CheckpointSettings {
  int64_t save_total_limit = 0;                       ///< checkpoints to keep; 0 = all
  bool save_only_model = false;                       ///< saves no training state
  std::optional<std::string> resume_from_checkpoint;  ///< "latest" or a checkpoint directory

  bool operator==(const CheckpointSettings&) const = default;
};

/// Evaluation and its metric (BEHAVIOUR 15).
struct EvaluationSettings {
  int per_device_eval_batch_size = 1;
  std::string metric_for_best_model;  ///< with its `eval_` prefix; empty = none
  bool greater_is_better = true;
  bool eval_on_start = false;  ///< evaluates before the first step
  /// ends the run if an evaluation is worse than the one at the start (learn/evaluate/health.h)
  bool stop_on_harm = false;
  /// ends the run after so many evaluations without a new best; 0 = never
  int64_t early_stopping_patience = 0;

  bool operator==(const EvaluationSettings&) const = default;
};

}  // namespace rematch
