#include "train/run_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/host_memory.h"
#include "base/terminal_text.h"
#include "observe/catalog.h"
#include "train/run_health.h"

namespace rematch {
namespace {

// Of the live line only.
constexpr const char* kTokensPerSecond = "tokens_per_s";
constexpr const char* kMemoryGib = "memory_gib";

// The metrics shown in the bar, with their short names.
constexpr std::pair<const char*, const char*> kBarFields[] = {{"loss", "loss"},
                                                              {"rollout/f1", "f1"},
                                                              {"rollout/f1_labels", "label f1"},
                                                              {kTokensPerSecond, "tok/s"},
                                                              {kMemoryGib, "GiB"},
                                                              {"learning_rate", "lr"},
                                                              {"time/step_s", "s/step"}};
constexpr std::pair<const char*, const char*> kEvaluationFields[] = {
    {"eval_rollout_f1", "f1"},
    {"eval_rollout_f1_labels", "label f1"},
    {"eval_rollout_precision", "precision"},
    {"eval_rollout_recall", "recall"},
    {"eval_loss", "loss"},
    {"eval_token_acc", "token acc"}};

/// Three significant digits, but from 1000 on the whole number: "0.812", "1.2e-05", "12345".
std::string short_number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

const double* find(const MetricValues& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& item) { return item.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace

RunLog::RunLog(Terminal& terminal, Live live) : terminal_(terminal), live_(std::move(live)) {}

void RunLog::step(TrainerState& state, const MetricsBag& metrics, bool log_due,
                  int64_t num_tokens) {
  MetricValues values = reduce_metrics(metrics);
  Progress bar{.phase = "train", .done = state.global_step, .total = state.max_steps};
  MetricValues shown = values;
  const double seconds = metrics.sum("time/step_s");
  if (seconds > 0)
    shown.emplace_back(kTokensPerSecond,
                       std::round(static_cast<double>(num_tokens * live_.num_ranks) / seconds));
  shown.emplace_back(kMemoryGib, static_cast<double>(live_.memory_bytes()) / kBytesPerGib);
  for (const auto& [name, label] : kBarFields) {
    if (const double* value = find(shown, name))
      bar.fields.emplace_back(label, short_number(*value));
  }
  terminal_.progress(bar);
  time_split_.add(metrics);
  if (state.global_step == state.max_steps) terminal_.finish_progress();
  if (!log_due) return;
  values.emplace_back("epoch", state.epoch);
  write(state, std::move(values));
}

bool RunLog::evaluation(TrainerState& state, const EvaluationResult& result, int64_t num_samples) {
  std::string line = fmt::format("evaluation after step {}:", state.global_step);
  for (const auto& [name, label] : kEvaluationFields) {
    if (const double* value = find(result.values, name))
      line += fmt::format(" {} {:.4f}", label, *value);
  }
  terminal_.say(line);
  MetricValues values = result.values;
  const std::optional<Health> health =
      health_since_start(state.log_history, values, num_samples, result.eval_set);
  if (health) {
    for (const std::string& text : health->lines()) terminal_.say(text);
    for (auto& value : health_metrics(*health)) values.push_back(std::move(value));
  }
  values.emplace_back("epoch", state.epoch);
  write(state, std::move(values), result.eval_set);
  return health && health->is_worse();
}

void RunLog::note_final_health(const TrainerState& state, int64_t num_samples) {
  const std::optional<Health> health = health_at_end(state.log_history, num_samples);
  if (!health) return;
  terminal_.say("of the last evaluation:");
  for (const std::string& text : health->lines()) terminal_.say(text);
}

void RunLog::note_stopped_by_harm(const TrainerState& state) {
  const std::string best =
      state.best_model_checkpoint ? "the best evaluation is that of " + *state.best_model_checkpoint
      : state.best_global_step == 0 ? "no evaluation was better than the start: keep model.model"
                                    : "no checkpoint of the best evaluation is kept";
  terminal_.say(fmt::format("stopped after step {} of {} (training.stop_on_harm); {}",
                            state.global_step, state.max_steps, best));
}

void RunLog::note_partial_window() {
  terminal_.warn(fmt::format(
      "the last window of an epoch is partial: it is used for one optimizer step, not for m_steps; "
      "choose "
      "per_device_train_batch_size x gradient_accumulation_steps{} so that it divides the number "
      "of samples "
      "(custom.train_sample_limit can drop the remainder)",
      live_.num_ranks > 1 ? fmt::format(" x the number of ranks ({})", live_.num_ranks) : ""));
}

void RunLog::note_saved(const std::string& path) {
  last_saved_ = path;
  terminal_.say(fmt::format("saved {}", path));
}

void RunLog::note_done(int64_t num_steps, double seconds, const std::string& run_dir) {
  terminal_.say(fmt::format("done: {} steps in {:.0f} s ({:.2f} s per step)", num_steps, seconds,
                            seconds / static_cast<double>(std::max<int64_t>(1, num_steps))));
  if (const std::string text = time_split_.text(seconds); !text.empty())
    terminal_.say("time: " + text);
  terminal_.say(fmt::format(
      "next: rematch report {}{}", shell_word(run_dir),
      last_saved_.empty()
          ? ""
          : fmt::format("; rematch predict {} IMAGES --draw drawn", shell_word(last_saved_))));
}

void RunLog::sync() {
  for (const auto& sink : sinks_) sink->sync();
}

void RunLog::write(TrainerState& state, MetricValues values, const std::string& eval_set) {
  for (const auto& sink : sinks_) sink->write(state.global_step, values, eval_set);
  state.log_history.push_back(
      {.step = state.global_step, .values = {values.begin(), values.end()}, .eval_set = eval_set});
}

}  // namespace rematch
