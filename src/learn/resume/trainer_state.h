#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// The name of a metric, stored once per process, so that a history of thousands of lines is small.
class MetricName {
 public:
  MetricName(const std::string& text);  // NOLINT: converts from text
  MetricName(const char* text) : MetricName(std::string(text)) {}
  operator const std::string&() const { return *text_; }
  bool operator==(const MetricName&) const = default;

 private:
  const std::string* text_;  ///< valid as long as the program runs
};

/// A line of the log: a step and its metrics.
struct LogEntry {
  int64_t step = 0;
  std::vector<std::pair<MetricName, double>> values;
  std::string eval_set;  ///< data set of an evaluation (learn/evaluate/eval_set.h), else empty

  bool operator==(const LogEntry&) const = default;
};

/// Metric and data set of a best score; scores of another metric or set are not comparable.
struct BestOf {
  std::string metric;  ///< empty = unknown, in files of older versions
  bool greater_is_better = true;
  std::string eval_set;  ///< learn/evaluate/eval_set.h

  bool operator==(const BestOf&) const = default;
};

/// Progress of a run, without its weights and its position in the data.
struct RunProgress {
  int64_t global_step = 0;  ///< finished optimizer steps
  double epoch = 0;
  std::optional<double> best_metric;
  std::optional<int64_t> best_global_step;
  std::optional<std::string> best_model_checkpoint;
  BestOf best_of;  ///< of best_metric
  /// checkpoints that were the best for another metric or set; never deleted
  Strings kept_checkpoints;
  std::vector<LogEntry> log_history;

  /// If `value` is better than best_metric, stores it with `step` and returns true.
  bool update_best(double value, bool greater_is_better, int64_t step);

  /// Number of evaluations after the best one, over its data set. From the log history, so that a
  /// resumed run counts on.
  int64_t evaluations_since_best() const;

  /// Sets the metric and data set of the evaluations from now on. If they differ from those of
  /// best_metric, resets the best score and keeps its checkpoint.
  /// @return a note for the user; nullopt if nothing was reset
  std::optional<std::string> reset_best(const BestOf& now);
};

/// The state of a run for other programs too; written as trainer_state.json with transformers'
/// field names.
struct TrainerState {
  RunProgress progress;
  // The configured length and cadence; a resumed run keeps its own.
  int64_t max_steps = 0;
  double num_train_epochs = 0;
  int64_t logging_steps = 0;
  int64_t eval_steps = 0;
  int64_t save_steps = 0;
  int64_t train_batch_size = 1;

  /// Reads a trainer_state.json. Ignores unknown keys.
  /// @param origin  its path, for errors.
  /// @throws UserError (data) for invalid JSON, a missing key or a value of the wrong type
  static TrainerState from_json(std::string_view text, const std::string& origin);
};

/// Passes the text of trainer_state.json (indent 2) to `print` in pieces of about 1 MiB, so that a
/// long history is never in memory as text. transformers' TrainerState.load_from_json reads it.
/// Doubles are exact, except that num_train_epochs is rounded up, as transformers does.
void print_trainer_state(const TrainerState& state,
                         const std::function<void(std::string_view)>& print);

/// Writes trainer_state.json.
/// @throws UserError (environment), e.g. on a full disk
void write_trainer_state(const TrainerState& state, const std::string& path);

}  // namespace rematch
