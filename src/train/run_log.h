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
  /// Inputs of the progress line besides the metrics.
  struct Live {
    std::function<int64_t()> memory_bytes;            ///< memory in use on this rank's device
    int num_ranks = 1;                                ///< each trains on about as many tokens
    std::string memory_name = "RAM";                  ///< "RAM" or "GPU"
    std::optional<FormatWatch::Options> format = {};  ///< for runs with rollouts
  };
  RunLog(Terminal& terminal, Live live);

  Terminal& terminal() { return terminal_; }
  /// Adds an output for all later log lines.
  void add(std::unique_ptr<MetricSink> sink) { sinks_.push_back(std::move(sink)); }

  /// After an optimizer step: moves the bar; when `log_due`, writes the step's metrics (plus
  /// `epoch`) to every sink and the history. Warns once when no answer of the first window is
  /// usable; the line of the first step then logs their number.
  /// @param num_tokens  tokens that this rank trained on in the step
  void step(TrainerState& state, const MetricsBag& metrics, bool log_due, int64_t num_tokens);

  /// After an evaluation: shows its scores and health on the terminal, and writes both to every
  /// sink and the history. @param num_samples  evaluated samples
  /// @return true when its health is worse than at the start of the run
  bool evaluation(TrainerState& state, const EvaluationResult& result, int64_t num_samples);

  /// At the end of a run: shows the health of its last evaluation, unless that was just shown.
  /// @param num_samples  evaluated samples
  void note_final_health(const TrainerState& state, int64_t num_samples);

  /// Reports that `stop_on_harm` ended the run, and which checkpoint to use.
  void note_stopped_by_harm(const TrainerState& state);

  /// Warns once that the last window of an epoch is too small to be reused.
  void note_partial_window();

  /// Flushes every line to the device.
  void sync();
  /// @throws UserError (environment) if a log was removed, moved or replaced
  void require_in_place() const;

  /// Reports where a checkpoint is saved.
  void note_saved(const std::string& path);

  /// At the end of a run: its duration and where the time went, the best checkpoint, the next
  /// command. @param num_steps  steps of this process
  /// @param seconds  since the first step, evaluations and saving included
  void note_done(const TrainerState& state, int64_t num_steps, double seconds,
                 const std::string& run_dir);

 private:
  void write(TrainerState& state, MetricValues values, const std::string& eval_set = {});
  /// Warns when the model's answers are unusable. @return the number of answers when none is usable
  int64_t watch_format(int64_t num_answers, int64_t num_malformed, int64_t num_truncated);
  void say_health(const Health& health);

  Terminal& terminal_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  Live live_;
  TrainBar bar_;
  std::optional<FormatWatch> format_watch_;
  TimeSplit time_split_;
  int64_t health_shown_at_step_ = -1;
  bool start_advised_ = false;
  std::string last_saved_;  ///< checkpoint; empty = none yet
};

}  // namespace rematch
