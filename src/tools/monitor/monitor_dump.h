#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/observe/sinks.h"
#include "base/observe/terminal.h"
#include "base/settings/match.h"
#include "base/settings/monitor.h"
#include "base/settings/target.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/match/labels.h"
#include "learn/estep/rollout_scorer.h"

namespace rematch {

/// Pictures and texts of rollouts during a training: `step_N.png` with ground truth, answer and
/// matches, `step_N.md` with the texts, both also in TensorBoard, and `completions/step_N.jsonl` in
/// the run directory. A background thread draws and writes, so a step only waits for copying. A
/// failed write is a warning. A repeated step of a resumed run replaces its files.
class MonitorDump {
 public:
  struct Options {
    MonitorSettings settings;
    MatchSettings match;
    TargetSettings target;
    std::string run_dir;
    int64_t logging_steps = 5;
    std::string user_prompt;
    TensorboardSink* tensorboard = nullptr;  ///< must outlive this object; may be null
  };
  /// The format and the terminal must outlive it.
  /// @throws UserError (environment) when a directory cannot be created
  MonitorDump(Options options, const AnswerFormat& format, Terminal& terminal);
  /// Writes all waiting dumps.
  ~MonitorDump();

  /// Dumps the first rollouts of a window if its step is due.
  /// @param step  optimizer step, from 1
  void dump(int64_t step, const std::vector<ScoredRollout>& rollouts);

  /// Line for the end of a run: how long steps waited for the dumps.
  /// @param seconds  duration of the run
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
