#include "learn/resume/trainer_state_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace rematch {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr std::string_view kHistory = "\n  \"log_history\": [";

Json optional_json(const auto& value) { return value ? Json(*value) : Json(nullptr); }

Json own_fields(const RunProgress& progress) {
  Json own = Json::object();
  if (!progress.best_of.metric.empty()) {
    own["best_metric_name"] = progress.best_of.metric;
    own["best_metric_greater_is_better"] = progress.best_of.greater_is_better;
    own["best_metric_eval_set"] = progress.best_of.eval_set;
  }
  if (!progress.kept_checkpoints.empty()) own["kept_checkpoints"] = progress.kept_checkpoints;
  return own;
}

// The whole file with an empty history.
std::string make_frame(const TrainerState& run) {
  const RunProgress& progress = run.progress;
  Json state;
  state["best_global_step"] = optional_json(progress.best_global_step);
  state["best_metric"] = optional_json(progress.best_metric);
  state["best_model_checkpoint"] = optional_json(progress.best_model_checkpoint);
  state["epoch"] = progress.epoch;
  state["eval_steps"] = run.eval_steps;
  state["global_step"] = progress.global_step;
  state["is_hyper_param_search"] = false;
  state["is_local_process_zero"] = true;
  state["is_world_process_zero"] = true;
  state["log_history"] = Json::array();
  state["logging_steps"] = run.logging_steps;
  state["max_steps"] = run.max_steps;
  state["num_input_tokens_seen"] = 0;  // not counted
  state["num_train_epochs"] = static_cast<int64_t>(std::ceil(run.num_train_epochs));
  state["save_steps"] = run.save_steps;
  // transformers reads only its callbacks' entries here, so other programs may add some.
  state["stateful_callbacks"] = Json::object();
  const Json own = own_fields(progress);
  if (!own.empty()) state["stateful_callbacks"]["rematch"] = own;
  state["total_flos"] = 0.0;
  state["train_batch_size"] = run.train_batch_size;
  state["trial_name"] = nullptr;
  state["trial_params"] = nullptr;
  return python_json(state, 2) + "\n";
}

// Appends an entry of the history with its indentation.
void append_entry(std::string& text, const LogEntry& entry) {
  Json line = Json::object();
  for (const auto& [name, value] : entry.values) line[std::string(name)] = value;
  if (!entry.eval_set.empty()) line["eval_set"] = entry.eval_set;
  line["step"] = entry.step;
  text += "    ";
  for (const char c : python_json(line, 2)) {
    text += c;
    if (c == '\n') text += "    ";
  }
}

}  // namespace

void print_trainer_state(const TrainerState& state,
                         const std::function<void(std::string_view)>& print) {
  const std::vector<LogEntry>& history = state.progress.log_history;
  const std::string frame = make_frame(state);
  const size_t found = frame.find(kHistory);
  REMATCH_CHECK(found != std::string::npos);
  const size_t inside = found + kHistory.size();
  print(std::string_view(frame).substr(0, inside));
  std::string piece;
  for (size_t i = 0; i < history.size(); ++i) {
    piece += i == 0 ? "\n" : ",\n";
    append_entry(piece, history[i]);
    if (piece.size() < kPieceBytes) continue;
    print(piece);
    piece.clear();
  }
  if (!history.empty()) piece += "\n  ";
  print(piece);
  print(std::string_view(frame).substr(inside));
}

void write_trainer_state(const TrainerState& state, const std::string& path) {
  FileWriter writer(path);
  print_trainer_state(state, [&](std::string_view piece) { writer.write(piece); });
  writer.finish();
}

}  // namespace rematch
