#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/observe/sinks.h"
#include "base/observe/terminal.h"
#include "learn/evaluate/evaluate.h"
#include "learn/evaluate/health.h"
#include "learn/resume/run_state.h"
#include "learn/resume/trainer_state.h"
#include "learn/train/format_watch.h"
#include "learn/train/time_split.h"
#include "learn/train/train_bar.h"

namespace rematch {

/// The outputs of a run: the progress bar, logging.jsonl, TensorBoard and the log history of
/// trainer_state.json.
class RunLog {
 public:
  /// Inputs of the progress line besides the metrics.
  struct Live {
    std::function<int64_t()> memory_bytes;            ///< memory in use on this rank's device
    int num_ranks = 1;                                ///< each trains on about as many tokens
    std::string memory_name = "RAM";                  ///< "RAM" or "GPU"
    std::optional<FormatWatch::Options> format = {};  ///< for runs with rollouts
    double gate = 0.3;                                ///< `maskiou_gate`, of the F1 in the bar
  };
  RunLog(Terminal& terminal, Live live);

  Terminal& terminal() { return terminal_; }
  /// Adds an output for all later log lines.
  void add(std::unique_ptr<MetricSink> sink) { sinks_.push_back(std::move(sink)); }

  /// After an optimizer step: moves the bar with its metrics; when `log_due`, writes those of all
  /// steps since the last line (plus `epoch`) to every sink and the history. Warns once when no
  /// answer of the first window is usable; the line of the first step then logs their number.
  /// @param num_tokens  tokens that this rank trained on in the step
  void step(TrainerState& state, const MetricsBag& metrics, bool log_due, int64_t num_tokens);

  /// The steps that the next log line will hold besides those to come; part of a checkpoint.
  const LogInterval& interval() const { return interval_; }
  void restore(LogInterval interval) { interval_ = std::move(interval); }

  /// After an evaluation: shows its scores and health on the terminal, and writes both to every
  /// sink and the history.
  /// @param num_samples  evaluated samples
  /// @return true when its health is harmful
  bool evaluation(RunProgress& progress, const EvaluationResult& result, int64_t num_samples);

  /// Reports that an evaluation ended the run.
  /// @param reason  the key that wanted it
  void note_stopped_early(const TrainerState& state, const std::string& reason);

  /// Warns once that the last window of an epoch is too small to be reused.
  void note_partial_window();

  /// Flushes every line to the device.
  void sync();
  /// @throws UserError (environment) if a log was removed, moved or replaced
  void require_in_place() const;

  /// Reports where a checkpoint is saved.
  void note_saved(const std::string& path);

  struct RunEnd {
    int64_t num_steps = 0;  ///< of this process
    double seconds = 0;     ///< since the first step, evaluations and saves included
    std::string run_dir;
    bool has_validation = false;  ///< custom.val_jsonl is set
  };
  /// At the end of a run: its duration and where the time went, the best checkpoint, the next
  /// commands.
  void note_done(const RunProgress& progress, const RunEnd& end);

 private:
  void write(RunProgress& progress, MetricValues values, const std::string& eval_set = {});
  /// Warns when the model's answers are unusable.
  /// @return the number of answers when none is usable
  int64_t watch_format(const AnswerCounts& counts);
  void say_health(const Health& health, double epoch);
  /// Says that one name stands for many.
  void say_collapse(const EvaluationResult& result, const advice::Training& training);
  advice::Training training_at(double epoch) const;
  /// After the first steps: says how long the run will take.
  void estimate(const TrainerState& state, double step_s);

  Terminal& terminal_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  Live live_;
  TrainBar bar_;
  LogInterval interval_;
  std::optional<FormatWatch> format_watch_;
  TimeSplit time_split_;
  bool start_advised_ = false;
  double least_collapse_ = 1;  ///< lowest share of one name in an evaluation of this process
  int64_t steps_seen_ = 0;     ///< of this process
  double settled_s_ = 0;       ///< their time without that of the first
  std::string last_saved_;     ///< checkpoint; empty = none yet
};

}  // namespace rematch
