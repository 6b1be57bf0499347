#include "learn/train/trainer.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/heap.h"
#include "base/interrupt.h"
#include "base/keeps_state.h"
#include "base/terminal_text.h"
#include "engine/ranks/phase.h"
#include "engine/rollout/with_engine.h"

namespace rematch {
namespace {

// Returning memory after every window would cost a small model a tenth of its time (page faults).
constexpr int64_t kWindowsPerCleaning = 16;

/// The problems of a failed save. If weights are not finite before the first step, the run was
/// given a damaged checkpoint.
std::vector<Problem> save_problems(const UserError& unsaved, int64_t num_steps) {
  std::vector<Problem> problems = unsaved.problems();
  if (num_steps > 0 || unsaved.kind() != ErrorKind::kData) return problems;
  problems.front().error =
      "the checkpoint that the run starts from is damaged: its weights are not finite";
  problems.front().fix = "download or convert model.model again, or start from another checkpoint";
  return problems;
}

}  // namespace

Trainer::Trainer(Group& group, Source source, std::optional<RolloutParts> rollouts, Update update,
                 Record record)
    : group_(group),
      source_(std::move(source)),
      rollouts_(std::move(rollouts)),
      update_(std::move(update)),
      record_(std::move(record)),
      end_(end_by_steps()) {}

void Trainer::start() {
  run_phase(group_, "evaluate", [&] {
    const bool is_new = progress().global_step == 0 && progress().log_history.empty();
    if (is_new && record_.evaluation && record_.evaluation->settings().eval_on_start) evaluate();
    if (!evaluation_pending_) return;
    evaluate_and_save(true, record_.cadence.after_step(progress().global_step, false).save);
  });
}

void Trainer::phase(const char* name, StepMetrics& metrics, const std::function<void()>& body) {
  untimed_phase(name, [&] {
    const Span time(metrics, "time/step_s");
    body();
  });
}

void Trainer::untimed_phase(const char* name, const std::function<void()>& body) {
  const auto return_to_here = [this, cursor = stream().cursor(), packed = packer()] {
    stream().rewind(cursor);
    packer() = packed;
  };
  try {
    run_phase(group_, name, body);
  } catch (const Interrupted&) {
    return_to_here();
    save();  // an interrupt promises a saved state: a failed save is the error
    throw;
  } catch (const UserError& failure) {
    if (dynamic_cast<const KeepsState*>(&failure) == nullptr) throw;
    return_to_here();
    const std::vector<Problem> unsaved = try_save();
    if (unsaved.empty()) throw;
    std::vector<Problem> problems = failure.problems();
    problems.insert(problems.end(), unsaved.begin(), unsaved.end());
    throw UserError(failure.kind(), std::move(problems));
  }
}

bool Trainer::rolls_out(const WindowPlan& plan, MetricsBag& metrics) const {
  if (!rollouts_) return false;
  const bool rolls = window_rolls_out(plan.window_idx, rollouts_->share);
  metrics.add("rollout/is_rollout", rolls ? 1 : 0);
  return rolls;
}

std::vector<ScoredRollout> Trainer::prepare(const WindowPlan& plan) const {
  scorer().prefetch(plan.samples(), plan.epoch);
  return scorer().prepare(plan.samples(), plan.epoch);
}

void Trainer::prefetch_next() {
  if (!rollouts_ || buffer().is_reuse()) return;
  const OpenWindow& open = *buffer().state();
  // Without rollouts a window's own images are still loading.
  if (!window_rolls_out(open.window.window_idx, rollouts_->share)) return;
  const Due due = record_.cadence.after_step(progress().global_step + 1, open.last_of_epoch);
  if (due.stop || due.evaluate) return;  // an evaluation would drop them
  const WindowCursor here = stream().cursor();
  const WindowPlan next = stream().next();
  stream().rewind(here);
  scorer().prefetch(next.samples(), next.epoch);
}

void Trainer::roll_out(std::vector<ScoredRollout>& rollouts, const WindowPlan& plan,
                       MetricsBag& metrics) {
  const RolloutSource& source = rollouts_->source;
  group_.barrier();  // no rank enters a shared engine after another one failed
  with_engine(source.engine, source.offload, plan.window_idx,
              [&] { rematch::roll_out(source.engine, rollouts, metrics); });
}

void Trainer::show(const std::vector<ScoredRollout>& scored) const {
  const auto& observe = rollouts_->on_rollouts;
  if (observe) observe(progress().global_step + 1, scored);
}

void Trainer::open(OpenWindow window) {
  window.step0 = progress().global_step;
  buffer().open(std::move(window));
  if (buffer().is_cut_short()) record_.log.note_partial_window();
}

void Trainer::finish_step(StepMetrics& metrics) {
  const int64_t step = ++record_.state.progress.global_step;
  record_.state.progress.epoch = record_.cadence.epoch_at(step);
  const bool ends_epoch = buffer().finish_step(metrics);
  if (!buffer().is_open()) {
    if (update_.features) update_.features->clear();
    if (++num_windows_ % kWindowsPerCleaning == 0) give_back_free_memory();
  }

  const Due due = record_.cadence.after_step(step, ends_epoch);
  if (!group_.is_alone()) metrics.add("time/rank_wait_s", group_.take_wait_s());
  record_.log.step(record_.state, gather_metrics(group_, metrics), due.log,
                   buffer().last_num_tokens());
  const bool is_saved =
      evaluate_and_save(due.evaluate, on_any_rank(group_, take_save_request()) || due.save);
  if (!is_done()) end_ = end_by_steps();
  if (is_done() || !on_any_rank(group_, interrupt_requested())) return;
  if (!is_saved) save();
  end_ = End::kInterrupt;
}

End Trainer::end_by_steps() const {
  return progress().global_step >= total_steps() ? End::kLastStep : End::kNone;
}

/// @return true when it saved
bool Trainer::evaluate_and_save(bool evaluation_due, bool save_due) {
  evaluation_pending_ = evaluation_due && record_.evaluation != nullptr;
  if (evaluation_pending_) {
    const bool is_best = evaluate();
    evaluation_pending_ = false;
    const bool ends_by_scores = record_.evaluation->settings().stop_on_harm || patience() > 0;
    save_due = save_due || stopped_early() ||
               (is_best && record_.cadence.saves_best(progress().global_step, ends_by_scores));
  }
  if (save_due) save();
  if (stopped_early()) {
    record_.log.note_stopped_early(
        record_.state, end_ == End::kHarm
                           ? "training.stop_on_harm"
                           : fmt::format("training.early_stopping_patience: {} without a new best",
                                         counted(patience(), "evaluation")));
  }
  return save_due;
}

/// Evaluates, logs and compares with the start.
/// @return true when the result is the best so far
bool Trainer::evaluate() {
  Evaluation& evaluation = *record_.evaluation;
  RunProgress& progress = record_.state.progress;
  bool is_best = false;
  run_phase(group_, "evaluate", [&] {
    const EvaluationResult result = evaluation.run(record_.log.terminal());
    if (result.calibration) {
      calibration_ = result.calibration;
      calibration_->set_step(progress.global_step);
    }
    const bool is_worse = record_.log.evaluation(progress, result, evaluation.num_samples());
    is_best = result.metric &&
              progress.update_best(*result.metric, result.greater_is_better, progress.global_step);
    if (is_best) progress.best_of = best_of();
    const bool is_out_of_patience =
        patience() > 0 && progress.evaluations_since_best() >= patience();
    if (on_any_rank(group_, group_.rank() == 0 && is_out_of_patience)) end_ = End::kPatience;
    if (on_any_rank(group_, group_.rank() == 0 && is_worse) && evaluation.settings().stop_on_harm)
      end_ = End::kHarm;
  });
  return is_best;
}

int64_t Trainer::patience() const { return record_.evaluation->settings().early_stopping_patience; }

BestOf Trainer::best_of() const {
  const EvaluationSettings& settings = record_.evaluation->settings();
  return {settings.metric_for_best_model, settings.greater_is_better,
          record_.evaluation->eval_set()};
}

/// After a resume: scores over another set, or of another metric, no longer serve as reference.
void Trainer::warn_about_changed_evaluation() {
  Terminal& terminal = record_.log.terminal();
  if (!record_.evaluation->settings().metric_for_best_model.empty()) {
    if (const auto text = record_.state.progress.reset_best(best_of())) terminal.warn(*text);
  }
  const std::vector<LogEntry>& history = progress().log_history;
  const auto last = std::find_if(history.rbegin(), history.rend(),
                                 [](const LogEntry& entry) { return !entry.eval_set.empty(); });
  if (last == history.rend() || last->eval_set == record_.evaluation->eval_set()) return;
  terminal.warn(
      fmt::format("the last evaluation, after step {}, was over {}; from now on it is {}: "
                  "the health line compares with the first evaluation over that set",
                  last->step, last->eval_set, record_.evaluation->eval_set()));
}

RunState Trainer::run_state() const {
  return {.num_steps = update_.mstep->num_steps(),
          .cursor = source_.stream->cursor(),
          .open = source_.buffer.state(),
          .waiting = source_.packer.waiting(),
          .packing = source_.packer.summary(),
          .evaluation_pending = evaluation_pending_,
          .log_interval = record_.log.interval(),
          .fingerprint = record_.fingerprint};
}

/// Writes a checkpoint of the current state: weights, optimizer, position in the data, open window,
/// carry buffer, trainer state. Every rank calls it.
/// @throws UserError (environment)
void Trainer::save() {
  run_phase(group_, "save", [&] {
    RunLog& log = record_.log;
    log.sync();  // after a power loss, the log must hold the steps of every checkpoint
    const StateShard part{group_.rank(), group_.size()};
    const auto write_state = [&](const std::string& directory) {
      write_state_shard(directory, {to_wire(run_state()), update_.mstep->state_to_save()}, part);
    };
    const auto seal = [&](const std::string& directory) {
      write_state_manifest(directory, part.size);
    };
    log.note_saved(record_.checkpoints.save(record_.state, write_state, seal, calibration_));
    log.require_in_place();  // last: if the run's directory was removed, its state is saved
  });
}

/// Saves after a failure.
/// @return the problems of a failed save; empty when the state is saved, or when the save failed on
/// another rank, which reports it
std::vector<Problem> Trainer::try_save() {
  try {
    save();
  } catch (const PeerFailure&) {
    return {};
  } catch (const UserError& unsaved) {
    return save_problems(unsaved, progress().global_step);
  }
  return {};
}

void Trainer::restore(LoadedCheckpoint loaded) {
  source_.bad_samples.drop_from(loaded.run);
  mstep().optimizer().load_state(loaded.optimizer, loaded.run.num_steps);
  stream().seek(loaded.run.cursor);
  buffer().restore(std::move(loaded.run.open));
  packer().restore(std::move(loaded.run.waiting), loaded.run.packing);
  evaluation_pending_ = loaded.run.evaluation_pending;
  record_.log.restore(std::move(loaded.run.log_interval));
  record_.state.progress = std::move(loaded.progress);
  calibration_ = ScoreCalibration::read(loaded.path);
  if (record_.evaluation != nullptr) warn_about_changed_evaluation();
  end_ = end_by_steps();
}

}  // namespace rematch
