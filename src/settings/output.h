#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// Outputs of a run.
struct OutputSettings {
  std::string output_dir = "output";
  /// `vN-YYYYMMDD-HHMMSS` between the two, N one above the largest there is
  bool add_version = false;
  std::optional<std::string> run_name;  ///< none or empty: no extra level
  std::string logging_dir;              ///< of TensorBoard events
  std::vector<std::string> report_to{"tensorboard"};
  /// output_dir[/vN-date-time][/run_name]; no key sets it, see run_directory()
  std::string run_dir;

  bool wants_wandb() const {
    return std::find(report_to.begin(), report_to.end(), "wandb") != report_to.end();
  }
  bool wants_tensorboard() const {
    return std::find(report_to.begin(), report_to.end(), "tensorboard") != report_to.end();
  }
  bool operator==(const OutputSettings&) const = default;
};

/// The checkpoints of a run, and where it resumes (BEHAVIOUR 17).
struct CheckpointSettings {
  int64_t save_total_limit = 0;                       ///< 0 = all are kept
  bool save_only_model = false;                       ///< no training state
  std::optional<std::string> resume_from_checkpoint;  ///< "latest" or a checkpoint directory

  bool operator==(const CheckpointSettings&) const = default;
};

/// Evaluation and its scores (BEHAVIOUR 15).
struct EvaluationSettings {
  int per_device_eval_batch_size = 1;
  std::string metric_for_best_model;  ///< with its `eval_` prefix; empty = none
  bool greater_is_better = true;
  bool eval_on_start = false;  ///< an evaluation before the first step
  /// an evaluation that is worse than the start ends the run (evaluate/health.h)
  bool stop_on_harm = false;

  bool operator==(const EvaluationSettings&) const = default;
};

}  // namespace rematch
