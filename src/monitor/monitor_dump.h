#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estep/rollout_scorer.h"
#include "estep/match/labels.h"
#include "estep/answer/answer_format.h"
#include "observe/sinks.h"
#include "observe/terminal.h"
#include "settings/match.h"
#include "settings/monitor.h"
#include "settings/target.h"

namespace rematch {

/// Pictures and texts of rollouts during a training: `step_N.png` with ground truth, answer and
/// matches, `step_N.md` with the texts, both also in TensorBoard, and `completions/step_N.jsonl` in
/// the run directory. A background thread draws and writes, so a step only pays for copying; a
/// failed write is a warning. A step that a resumed run repeats replaces its files.
class MonitorDump {
 public:
  struct Options {
    MonitorSettings settings;
    MatchSettings match;
    TargetSettings target;
    std::string run_dir;
    int64_t logging_steps = 5;
    std::string user_prompt;
    TensorboardSink* tensorboard = nullptr;  ///< outlives it; null = none
  };
  /// The format and the terminal outlive it. @throws UserError (environment) when a directory
  /// cannot be made
  MonitorDump(Options options, const AnswerFormat& format, Terminal& terminal);
  /// Writes what is still waiting.
  ~MonitorDump();

  /// Dumps the first rollouts of a window if its step is due. @param step  optimizer step, from 1
  void dump(int64_t step, const std::vector<ScoredRollout>& rollouts);

  /// How long steps have waited for it, as the line at the end of a run. @param seconds  of the run
  std::string summary_text(double seconds) const;

 private:
  bool is_due(int64_t step) const;

  class Writer;
  const Options options_;
  const AnswerFormat& format_;
  const LabelMatch labels_;
  int64_t num_dumps_ = 0;
  double waited_s_ = 0;
  std::unique_ptr<Writer> writer_;
};

}  // namespace rematch
