#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

/// The name of a metric, stored once per process, so that a history of thousands of lines stores
/// only its numbers.
class MetricName {
 public:
  MetricName(const std::string& text);  // NOLINT: converts from text
  MetricName(const char* text) : MetricName(std::string(text)) {}
  operator const std::string&() const { return *text_; }
  bool operator==(const MetricName&) const = default;

 private:
  const std::string* text_;  ///< valid as long as the program runs
};

/// One logged line: metric name → value, plus the step it belongs to.
struct LogEntry {
  int64_t step = 0;
  std::vector<std::pair<MetricName, double>> values;
  std::string eval_set;  ///< what an evaluation was over (evaluate/eval_set.h), else empty

  bool operator==(const LogEntry&) const = default;
};

/// What a best score is a score of: those of another metric or set cannot be compared with it.
struct BestOf {
  std::string metric;  ///< empty = not known, in files of older versions
  bool greater_is_better = true;
  std::string eval_set;  ///< evaluate/eval_set.h

  bool operator==(const BestOf&) const = default;
};

/// The state of a run that other programs read; written as trainer_state.json with transformers'
/// field names.
struct TrainerState {
  int64_t global_step = 0;
  double epoch = 0;
  int64_t max_steps = 0;
  double num_train_epochs = 0;
  int64_t logging_steps = 0;
  int64_t eval_steps = 0;
  int64_t save_steps = 0;
  int64_t train_batch_size = 1;
  int64_t num_input_tokens_seen = 0;
  std::optional<double> best_metric;
  std::optional<int64_t> best_global_step;
  std::optional<std::string> best_model_checkpoint;
  BestOf best_of;  ///< of best_metric
  /// checkpoints that were the best of another metric or set, which are never deleted
  std::vector<std::string> kept_checkpoints;
  std::vector<LogEntry> log_history;

  /// True when `value` is better than best_metric; then stores it with `step`.
  bool update_best(double value, bool greater_is_better, int64_t step);

  /// Call it with what evaluations measure from now on. When that is not what best_metric is of, no
  /// score is the best any more, and the checkpoint that was is kept. @return what to tell the user
  std::optional<std::string> start_best_anew(const BestOf& now);

  /// trainer_state.json (indent 2), loadable by transformers' TrainerState.load_from_json.
  std::string to_json() const;

  /// Reads a trainer_state.json. Every double comes back bit for bit; num_train_epochs comes back
  /// rounded up, as transformers writes it. Unused keys are ignored.
  /// @param origin  its path, for errors. @throws UserError (data) for invalid JSON, a missing key
  /// or a value of the wrong type
  static TrainerState from_json(std::string_view text, const std::string& origin);
};

}  // namespace rematch
