#include "train/run_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/terminal_text.h"
#include "observe/catalog.h"
#include "train/evaluation_table.h"
#include "train/run_health.h"

namespace rematch {
namespace {

/// The best evaluation and its checkpoint; empty without a metric for the best.
std::string best_text(const TrainerState& state) {
  if (!state.best_metric) return "";
  const int64_t step = state.best_global_step.value_or(0);
  const std::string score = fmt::format("({} {:.4g})", state.best_of.metric, *state.best_metric);
  if (step == 0)
    return fmt::format("best  the start of the run {}: no evaluation was better", score);
  const std::string saved =
      state.best_model_checkpoint
          ? std::filesystem::path(*state.best_model_checkpoint).filename().string()
          : "";
  if (saved == fmt::format("checkpoint-{}", step)) return fmt::format("best  {} {}", saved, score);
  return fmt::format(
      "best  after step {} {}, which was not saved ({})", step, score,
      saved.empty() ? "training.save_strategy: best saves it" : "the best saved is " + saved);
}

}  // namespace

RunLog::RunLog(Terminal& terminal, Live live)
    : terminal_(terminal),
      live_(std::move(live)),
      bar_(live_.format.has_value(), live_.memory_name) {
  if (live_.format) format_watch_.emplace(*live_.format);
}

void RunLog::step(TrainerState& state, const MetricsBag& metrics, bool log_due,
                  int64_t num_tokens) {
  MetricValues values = reduce_metrics(metrics);
  const double seconds = metrics.sum("time/step_s");
  const double tokens_per_s =
      seconds > 0 ? static_cast<double>(num_tokens * live_.num_ranks) / seconds : 0;
  terminal_.progress(
      bar_.state(state.global_step, state.max_steps, values, tokens_per_s, live_.memory_bytes()));
  time_split_.add(metrics);
  if (state.global_step == state.max_steps) terminal_.finish_progress();
  const std::vector<double>& malformed = metrics.values("rollout/parse_malformed");
  const int64_t unusable =
      watch_format(std::ssize(malformed), std::llround(metrics.sum("rollout/parse_malformed")),
                   std::llround(metrics.sum("rollout/parse_truncated")));
  // Only in the first step: the log must not depend on where a run was resumed.
  if (unusable > 0 && state.global_step == 1)
    values.emplace_back("health/unusable_answers", static_cast<double>(unusable));
  if (!log_due) return;
  values.emplace_back("epoch", state.epoch);
  write(state, std::move(values));
}

int64_t RunLog::watch_format(int64_t num_answers, int64_t num_malformed, int64_t num_truncated) {
  if (!format_watch_) return 0;
  if (const auto text = format_watch_->observe(num_answers, num_malformed, num_truncated))
    terminal_.warn(*text);
  return num_malformed + num_truncated == num_answers ? num_answers : 0;
}

bool RunLog::evaluation(TrainerState& state, const EvaluationResult& result, int64_t num_samples) {
  terminal_.say(
      evaluation_table(state.log_history, state.global_step, result.values, result.eval_set));
  const auto num_answers = [&](const char* rate) -> int64_t {
    return std::llround(find_value(result.values, rate).value_or(0) *
                        static_cast<double>(num_samples));
  };
  if (state.global_step == 0)
    watch_format(num_samples, num_answers("eval_rollout_parse_malformed_rate"),
                 num_answers("eval_rollout_parse_truncated_rate"));
  MetricValues values = result.values;
  const std::optional<Health> health =
      health_since_start(state.log_history, values, num_samples, result.eval_set);
  if (health) {
    say_health(*health);
    health_shown_at_step_ = state.global_step;
    for (auto& value : health_metrics(*health)) values.push_back(std::move(value));
  }
  values.emplace_back("epoch", state.epoch);
  write(state, std::move(values), result.eval_set);
  return health && health->is_worse();
}

void RunLog::note_final_health(const TrainerState& state, int64_t num_samples) {
  const std::optional<Health> health = health_at_end(state.log_history, num_samples);
  if (!health || health_shown_at_step_ == state.global_step) return;
  terminal_.say("last evaluation:");
  say_health(*health);
}

void RunLog::say_health(const Health& health) {
  for (const std::string& text : health.lines(!live_.format)) terminal_.say(text);
  if (health.since_step > 0 && !std::exchange(start_advised_, true))
    terminal_.say("  training.eval_on_start: true compares with the start of the run");
}

void RunLog::note_stopped_by_harm(const TrainerState& state) {
  const std::string best =
      state.best_model_checkpoint   ? "the best evaluation is " + *state.best_model_checkpoint
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

void RunLog::note_done(const TrainerState& state, int64_t num_steps, double seconds,
                       const std::string& run_dir) {
  terminal_.say(fmt::format("done: {} in {:.0f} s ({:.2f} s per step)", counted(num_steps, "step"),
                            seconds,
                            seconds / static_cast<double>(std::max<int64_t>(1, num_steps))));
  if (const std::string text = time_split_.text(seconds); !text.empty())
    terminal_.say(wrapped("time: " + text, 2));
  if (const std::string text = best_text(state); !text.empty()) terminal_.say(text);
  terminal_.say("next: rematch report " + shell_word(run_dir));
  if (!last_saved_.empty())
    terminal_.say(fmt::format("      rematch predict {} IMAGES --draw drawn", shell_word(run_dir)));
}

void RunLog::sync() {
  for (const auto& sink : sinks_) sink->sync();
}

void RunLog::require_in_place() const {
  for (const auto& sink : sinks_) sink->require_in_place();
}

void RunLog::write(TrainerState& state, MetricValues values, const std::string& eval_set) {
  for (const auto& sink : sinks_) sink->write(state.global_step, values, eval_set);
  state.log_history.push_back(
      {.step = state.global_step, .values = {values.begin(), values.end()}, .eval_set = eval_set});
}

}  // namespace rematch
