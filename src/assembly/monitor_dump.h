#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "assembly/session.h"
#include "observe/sinks.h"
#include "settings/monitor.h"

namespace rematch {

/// Pictures of rollouts while it trains: `step_N.png` with truth, answer and the lines of matches,
/// `step_N.md` with the texts, both also in TensorBoard, and `completions/step_N.jsonl` in the
/// run directory with the columns of TRL's file (step, prompt, completion, rewards, advantage).
/// Drawing and writing happen on a thread of their own, so that a step only pays for copying what
/// is drawn; a failure to write is a warning.
class MonitorDump {
 public:
  struct Options {
    MonitorSettings settings;
    std::string run_dir;
    int64_t logging_steps = 5;
    /// the optimizer step that the rollouts are for, from 1
    std::function<int64_t()> step;
    TensorboardSink* tensorboard = nullptr;  ///< outlives it; null = none
  };
  /// The session outlives it.
  MonitorDump(const Session& session, Options options);
  /// Writes what is still waiting.
  ~MonitorDump();

  /// Seconds that steps have waited for it so far.
  double waited_s() const { return waited_s_; }

  /// Called with the examined samples of a window; dumps the first of them when the step is due.
  void operator()(const std::vector<Examined>& examined);

 private:
  bool is_due(int64_t step) const;
  struct Writer;
  const Session& session_;
  Options options_;
  LabelMatch labels_;
  int64_t num_events_ = 0;
  double waited_s_ = 0;
  std::unique_ptr<Writer> writer_;
};

}  // namespace rematch
