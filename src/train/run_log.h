#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "evaluate/evaluate.h"
#include "evaluate/health.h"
#include "observe/sinks.h"
#include "observe/terminal.h"
#include "resume/trainer_state.h"
#include "train/format_watch.h"
#include "train/time_split.h"
#include "train/train_bar.h"

namespace rematch {

/// The outputs of a run: the progress bar, logging.jsonl, TensorBoard and the log history of
/// trainer_state.json.
class RunLog {
 public:
  /// Sources of the live line in addition to the metrics.
  struct Live {
    std::function<int64_t()> memory_bytes;            ///< in use now, of this rank's device
    int num_ranks = 1;                                ///< that train on about as many
    std::string memory_name = "RAM";                  ///< "RAM" or "GPU"
    std::optional<FormatWatch::Options> format = {};  ///< of a run with rollouts
  };
  RunLog(Terminal& terminal, Live live);

  Terminal& terminal() { return terminal_; }
  /// Adds an output for everything that is logged from now on.
  void add(std::unique_ptr<MetricSink> sink) { sinks_.push_back(std::move(sink)); }

  /// After an optimizer step: moves the bar; when `log_due`, writes the step's metrics (plus
  /// `epoch`) to every sink and the history. Warns, once, when no answer of the first window can be
  /// used; the line of the first step holds their number as well.
  /// @param num_tokens  that this rank trained on in the step
  void step(TrainerState& state, const MetricsBag& metrics, bool log_due, int64_t num_tokens);

  /// After an evaluation: its scores and its health on the terminal, both to every sink and the
  /// history.
  /// @param num_samples  evaluated. @return true when its health is worse than at the start of the
  /// run
  bool evaluation(TrainerState& state, const EvaluationResult& result, int64_t num_samples);

  /// At the end of a run: the health of its last evaluation, if there are two and it was not said
  /// just before. @param num_samples  evaluated
  void note_final_health(const TrainerState& state, int64_t num_samples);

  /// Reports why a run ends before its last step, and which checkpoint to take (`stop_on_harm`).
  void note_stopped_by_harm(const TrainerState& state);

  /// Reports, once, that an epoch ends in a window too small to be reused.
  void note_partial_window();

  /// Waits until every line is on the device.
  void sync();

  /// Reports where a checkpoint is saved.
  void note_saved(const std::string& path);

  /// At the end of a run: how long it took and for what, the best checkpoint, and what to do next.
  /// @param num_steps  of this process. @param seconds  from the first step on, evaluations and
  /// saving included
  void note_done(const TrainerState& state, int64_t num_steps, double seconds,
                 const std::string& run_dir);

 private:
  void write(TrainerState& state, MetricValues values, const std::string& eval_set = {});
  /// Warns when it is time to. @return the answers, when none of them can be used
  int64_t watch_format(int64_t num_answers, int64_t num_malformed, int64_t num_truncated);
  void say_health(const Health& health);

  Terminal& terminal_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  Live live_;
  TrainBar bar_;
  std::optional<FormatWatch> format_watch_;
  TimeSplit time_split_;
  int64_t health_said_after_ = -1;  ///< step
  bool start_advised_ = false;
  std::string last_saved_;  ///< checkpoint; empty = none yet
};

}  // namespace rematch
