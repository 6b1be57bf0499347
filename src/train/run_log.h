#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "evaluate/evaluate.h"
#include "observe/sinks.h"
#include "observe/terminal.h"
#include "resume/trainer_state.h"

namespace rematch {

/// The outputs of a run: the progress bar, logging.jsonl, TensorBoard and the log history of trainer_state.json.
class RunLog {
 public:
  RunLog(Terminal& terminal, std::vector<std::unique_ptr<MetricSink>> sinks);

  Terminal& terminal() { return terminal_; }

  /// After an optimizer step: moves the bar; when `log_due`, writes the step's metrics (plus `epoch`) to every sink and the history.
  void step(TrainerState& state, const MetricsBag& metrics, bool log_due);

  /// After an evaluation: one line on the terminal, the values to every sink and the history.
  void evaluation(TrainerState& state, const EvaluationResult& result);

  /// Reports, once, that an epoch ends in a window too small to be reused.
  void note_partial_window();

  /// Reports where a checkpoint is saved.
  void note_saved(const std::string& path);

 private:
  void write(TrainerState& state, MetricValues values);
  Terminal& terminal_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
};

}  // namespace rematch
