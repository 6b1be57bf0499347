#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// One logged line: metric name → value, plus the step it belongs to.
struct LogEntry {
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;
};

/// What a run remembers about itself; written as trainer_state.json with transformers' field names.
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
  std::vector<LogEntry> log_history;

  /// True when `value` beats best_metric; then remembers it with `step`.
  bool update_best(double value, bool greater_is_better, int64_t step);

  /// trainer_state.json (indent 2), loadable by transformers' TrainerState.load_from_json.
  std::string to_json() const;
};

}  // namespace rematch
