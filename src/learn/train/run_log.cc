#include "learn/train/run_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "learn/train/evaluation_table.h"
#include "learn/train/run_health.h"

namespace rematch {
namespace {

/// The best evaluation and its checkpoint; empty without a metric for the best.
std::string best_text(const RunProgress& progress) {
  if (!progress.best_metric) return "";
  const int64_t step = progress.best_global_step.value_or(0);
  const std::string score =
      fmt::format("({} {:.3f})", score_name(progress.best_of.metric), *progress.best_metric);
  if (step == 0)
    return fmt::format("best  the start of the run {}: no evaluation was better", score);
  const std::string saved =
      progress.best_model_checkpoint
          ? std::filesystem::path(*progress.best_model_checkpoint).filename().string()
          : "";
  if (saved == fmt::format("checkpoint-{}", step)) return fmt::format("best  {} {}", saved, score);
  return fmt::format(
      "best  after step {} {}, which was not saved ({})", step, score,
      saved.empty() ? "training.save_strategy: best saves it" : "the best saved is " + saved);
}

AnswerCounts window_counts(const MetricsBag& metrics) {
  const auto sum = [&](const char* name) -> int64_t { return std::llround(metrics.sum(name)); };
  return {.answers = std::ssize(metrics.values("rollout/parse_malformed")),
          .malformed = sum("rollout/parse_malformed"),
          .truncated = sum("rollout/parse_truncated"),
          .with_object = sum("rollout/sample_valid_pred"),
          .dropped = sum("rollout/parse_dropped_invalid")};
}

}  // namespace

RunLog::RunLog(Terminal& terminal, Live live)
    : terminal_(terminal),
      live_(std::move(live)),
      bar_(live_.format.has_value(), live_.memory_name, live_.gate) {
  if (live_.format) format_watch_.emplace(*live_.format);
}

void RunLog::step(TrainerState& state, const MetricsBag& metrics, bool log_due,
                  int64_t num_tokens) {
  RunProgress& progress = state.progress;
  MetricValues shown = reduce_metrics(metrics);
  const double seconds = metrics.sum("time/step_s");
  const double tokens_per_s = seconds > 0 ? (num_tokens * live_.num_ranks) / seconds : 0;
  terminal_.progress(
      bar_.state(progress.global_step, state.max_steps, shown, tokens_per_s, live_.memory_bytes()));
  time_split_.add(metrics);
  estimate(state, seconds);
  if (progress.global_step == state.max_steps) terminal_.finish_progress();
  const int64_t unusable = watch_format(window_counts(metrics));
  interval_.add(metrics);
  if (!log_due) return;
  MetricValues values = reduce_metrics(interval_.metrics, MetricScope::kStep, interval_.num_steps);
  interval_ = {};
  // Only in the first step: the log must not depend on where a run was resumed.
  if (unusable > 0 && progress.global_step == 1)
    values.emplace_back("health/unusable_answers", unusable);
  values.emplace_back("epoch", progress.epoch);
  write(progress, std::move(values));
}

void RunLog::estimate(const TrainerState& state, double step_s) {
  constexpr int64_t kSettled = 5;                 // the first step also fills caches
  constexpr double kShortest = 60, kHour = 3600;  // seconds; shorter runs need no estimate
  if (++steps_seen_ > 1) settled_s_ += step_s;
  if (steps_seen_ != kSettled) return;
  const int64_t num_left = state.max_steps - state.progress.global_step;
  const double each_s = settled_s_ / (kSettled - 1), left_s = each_s * num_left;
  if (left_s < kShortest) return;
  terminal_.say(wrapped(
      fmt::format("time      about {} for the {} left ({} s each), without evaluations and saves",
                  left_s < kHour ? fmt::format("{:.0f} min", left_s / 60)
                                 : fmt::format("{:.1f} h", left_s / kHour),
                  counted(num_left, "step"), short_number(each_s)),
      10));
}

int64_t RunLog::watch_format(const AnswerCounts& counts) {
  if (!format_watch_) return 0;
  if (const auto text = format_watch_->observe(counts)) terminal_.warn(*text);
  return counts.all_unusable() ? counts.answers : 0;
}

bool RunLog::evaluation(RunProgress& progress, const EvaluationResult& result,
                        int64_t num_samples) {
  terminal_.say(
      evaluation_table(progress.log_history, progress.global_step, result.values, result.eval_set));
  const AnswerCounts counts = evaluation_counts(
      [&](const char* name) { return find_value(result.values, name); }, num_samples);
  if (progress.global_step == 0) watch_format(counts);
  const std::string unreadable = live_.format ? "" : counts.finding();
  if (!unreadable.empty()) terminal_.say(unreadable);
  MetricValues values = result.values;
  const std::optional<Health> health =
      health_since_start(progress.log_history, values, num_samples, result.eval_set);
  if (health) {
    say_health(*health, progress.epoch);
    for (auto& value : health_metrics(*health)) values.push_back(std::move(value));
  }
  say_collapse(result, training_at(progress.epoch));
  values.emplace_back("epoch", progress.epoch);
  write(progress, std::move(values), result.eval_set);
  return health && health->is_harmful();
}

advice::Training RunLog::training_at(double epoch) const {
  return {.kind = live_.format ? live_.format->kind : advice::Training::Kind::kStage1,
          .epoch = epoch};
}

void RunLog::say_collapse(const EvaluationResult& result, const advice::Training& training) {
  constexpr double kMoreVaried = 0.1;  // of all answered names
  const double predictions = find_value(result.values, "eval_rollout_pred_objects").value_or(0);
  if (predictions < kFewestPredictions) return;
  const double share = result.collapse ? result.collapse->predicted_share : 0;
  if (result.collapse) {
    terminal_.say("health: " + result.collapse->text());
    terminal_.say(
        fmt::format("  {}", advice::for_collapse(training, least_collapse_ < share - kMoreVaried)));
  }
  least_collapse_ = std::min(least_collapse_, share);
}

void RunLog::say_health(const Health& health, double epoch) {
  for (const std::string& text : health.lines(training_at(epoch))) terminal_.say(text);
  if (health.since_step > 0 && !std::exchange(start_advised_, true))
    terminal_.say("  training.eval_on_start: true compares with the start of the run");
}

void RunLog::note_stopped_early(const TrainerState& state, const std::string& reason) {
  terminal_.say(fmt::format("stopped after step {} of {} ({})", state.progress.global_step,
                            state.max_steps, reason));
}

void RunLog::note_partial_window() {
  terminal_.warn(fmt::format(
      "the last window of an epoch is partial: it is used for one optimizer step, not for m_steps; "
      "choose per_device_train_batch_size x gradient_accumulation_steps{} so that it divides the "
      "number of samples",
      live_.num_ranks > 1 ? fmt::format(" x {} ranks", live_.num_ranks) : ""));
}

void RunLog::note_saved(const std::string& path) {
  last_saved_ = path;
  terminal_.say(fmt::format("saved {}", path));
}

void RunLog::note_done(const RunProgress& progress, const RunEnd& end) {
  terminal_.say(fmt::format("done: {} in {:.0f} s, {:.2f} s a step without evaluations and saves",
                            counted(end.num_steps, "step"), end.seconds,
                            time_split_.steps_s() / std::max<int64_t>(1, end.num_steps)));
  if (const std::string text = time_split_.text(end.seconds); !text.empty())
    terminal_.say(wrapped("time: " + text, 2));
  if (const std::string text = best_text(progress); !text.empty()) terminal_.say(text);
  const std::string run = shell_word(end.run_dir), report = "rematch report " + run;
  if (last_saved_.empty()) {
    terminal_.say("next: " + report);
    return;
  }
  // The report has pictures only after an evaluation.
  terminal_.say(fmt::format("next: rematch eval {}{}", run, end.has_validation ? "" : " JSONL"));
  terminal_.say("      " + report);
  terminal_.say(fmt::format("      rematch predict {} IMAGES --draw drawn", run));
}

void RunLog::sync() {
  for (const auto& sink : sinks_) sink->sync();
}

void RunLog::require_in_place() const {
  for (const auto& sink : sinks_) sink->require_in_place();
}

void RunLog::write(RunProgress& progress, MetricValues values, const std::string& eval_set) {
  for (const auto& sink : sinks_) sink->write(progress.global_step, values, eval_set);
  progress.log_history.push_back({.step = progress.global_step,
                                  .values = {values.begin(), values.end()},
                                  .eval_set = eval_set});
}

}  // namespace rematch
