#include "train/trainer_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rematch {
namespace {

Json optional_json(const auto& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

bool TrainerState::update_best(double value, bool greater_is_better, int64_t step) {
  if (std::isnan(value)) return false;
  if (best_metric && !(greater_is_better ? value > *best_metric : value < *best_metric)) return false;
  best_metric = value;
  best_global_step = step;
  return true;
}

std::string TrainerState::to_json() const {
  Json state;
  state["best_global_step"] = optional_json(best_global_step);
  state["best_metric"] = optional_json(best_metric);
  state["best_model_checkpoint"] = optional_json(best_model_checkpoint);
  state["epoch"] = epoch;
  state["eval_steps"] = eval_steps;
  state["global_step"] = global_step;
  state["is_hyper_param_search"] = false;
  state["is_local_process_zero"] = true;
  state["is_world_process_zero"] = true;
  Json history = Json::array();
  for (const LogEntry& entry : log_history) {
    Json line = Json::object();
    for (const auto& [name, value] : entry.values) line[name] = value;
    line["step"] = entry.step;
    history.push_back(std::move(line));
  }
  state["log_history"] = std::move(history);
  state["logging_steps"] = logging_steps;
  state["max_steps"] = max_steps;
  state["num_input_tokens_seen"] = num_input_tokens_seen;
  state["num_train_epochs"] = static_cast<int64_t>(std::ceil(num_train_epochs));
  state["save_steps"] = save_steps;
  state["stateful_callbacks"] = Json::object();
  state["total_flos"] = 0.0;
  state["train_batch_size"] = train_batch_size;
  state["trial_name"] = nullptr;
  state["trial_params"] = nullptr;
  return python_json(state, 2) + "\n";
}

}  // namespace rematch
