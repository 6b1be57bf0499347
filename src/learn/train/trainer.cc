#include "learn/train/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

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

bool keeps_state(const UserError& failure) {
  return dynamic_cast<const KeepsState*>(&failure) != nullptr;
}

}  // namespace

Trainer::Trainer(TrainerParts parts) : parts_(std::move(parts)) { end_ = end_by_steps(); }

void Trainer::start() {
  run_phase(parts_.group, "evaluate", [&] {
    const bool is_new = progress().global_step == 0 && progress().log_history.empty();
    if (parts_.evaluate_first && is_new) evaluate();
    if (!evaluation_pending_) return;
    evaluate_and_save(true, parts_.cadence.after_step(progress().global_step, false).save);
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
    run_phase(parts_.group, name, body);
  } catch (const Interrupted&) {
    return_to_here();
    save();  // an interrupt promises a saved state: a failed save is the error
    throw;
  } catch (const UserError& failure) {
    if (!keeps_state(failure)) throw;
    return_to_here();
    const std::vector<Problem> unsaved = try_save();
    if (unsaved.empty()) throw;
    std::vector<Problem> problems = failure.problems();
    problems.insert(problems.end(), unsaved.begin(), unsaved.end());
    throw UserError(failure.kind(), std::move(problems));
  }
}

bool Trainer::rolls_out(const WindowPlan& plan, MetricsBag& metrics) const {
  if (!parts_.rollouts) return false;
  const bool rolls = rematch::rolls_out(plan.window_idx, parts_.rollouts->share);
  metrics.add("rollout/is_rollout", rolls ? 1 : 0);
  return rolls;
}

std::vector<ScoredRollout> Trainer::prepare(const WindowPlan& plan) const {
  scorer().prefetch(plan.samples(), plan.epoch);
  return scorer().prepare(plan.samples(), plan.epoch);
}

void Trainer::roll_out(std::vector<ScoredRollout>& rollouts, const WindowPlan& plan,
                       MetricsBag& metrics) {
  const RolloutSource& source = parts_.rollouts->source;
  parts_.group.barrier();  // no rank enters a shared engine after another one failed
  with_engine(source.engine, source.offload, plan.window_idx,
              [&] { rematch::roll_out(source.engine, rollouts, metrics); });
}

void Trainer::show(const std::vector<ScoredRollout>& scored) const {
  const auto& observe = parts_.rollouts->on_rollouts;
  if (observe) observe(progress().global_step + 1, scored);
}

void Trainer::open(OpenWindow window) {
  window.step0 = progress().global_step;
  buffer().open(std::move(window));
  if (buffer().is_cut_short()) parts_.log.note_partial_window();
}

void Trainer::finish_step(StepMetrics& metrics) {
  Group& group = parts_.group;
  const int64_t step = ++parts_.state.progress.global_step;
  parts_.state.progress.epoch = parts_.cadence.epoch_at(step);
  const bool ends_epoch = buffer().finish_step(metrics);
  if (!buffer().is_open()) {
    if (parts_.features) parts_.features->clear();
    if (++num_windows_ % kWindowsPerCleaning == 0) give_back_free_memory();
  }

  const Due due = parts_.cadence.after_step(step, ends_epoch);
  if (!group.is_alone()) metrics.add("time/rank_wait_s", group.take_wait_s());
  parts_.log.step(parts_.state, gather_metrics(group, metrics), due.log,
                  buffer().last_num_tokens());
  const bool is_saved =
      evaluate_and_save(due.evaluate, on_any_rank(group, take_save_request()) || due.save);
  if (!is_done()) end_ = end_by_steps();
  if (is_done() || !on_any_rank(group, interrupt_requested())) return;
  if (!is_saved) save();
  end_ = End::kInterrupt;
}

End Trainer::end_by_steps() const {
  return progress().global_step >= total_steps() ? End::kLastStep : End::kNone;
}

/// @return true when it saved
bool Trainer::evaluate_and_save(bool evaluation_due, bool save_due) {
  evaluation_pending_ = evaluation_due && parts_.evaluation != nullptr;
  if (evaluation_pending_) {
    const bool is_best = evaluate();
    evaluation_pending_ = false;
    const bool saves_best =
        is_best && parts_.save_on_best && parts_.cadence.may_save(progress().global_step);
    save_due = save_due || stopped_early() || saves_best;
  }
  if (save_due) save();
  if (stopped_early()) {
    parts_.log.note_stopped_early(
        parts_.state, end_ == End::kHarm
                          ? "training.stop_on_harm"
                          : fmt::format("training.early_stopping_patience: {} without a new best",
                                        counted(patience(), "evaluation")));
  }
  return save_due;
}

/// Evaluates, logs and compares with the start.
/// @return true when the result is the best so far
bool Trainer::evaluate() {
  Group& group = parts_.group;
  Evaluation& evaluation = *parts_.evaluation;
  RunProgress& progress = parts_.state.progress;
  bool is_best = false;
  run_phase(group, "evaluate", [&] {
    const EvaluationResult result = evaluation.run(parts_.log.terminal());
    if (result.calibration) *parts_.calibration = result.calibration;
    const bool is_worse = parts_.log.evaluation(progress, result, evaluation.num_samples());
    is_best = result.metric &&
              progress.update_best(*result.metric, result.greater_is_better, progress.global_step);
    if (is_best) progress.best_of = best_of();
    const bool is_out_of_patience =
        patience() > 0 && progress.evaluations_since_best() >= patience();
    if (on_any_rank(group, group.rank() == 0 && is_out_of_patience)) end_ = End::kPatience;
    if (on_any_rank(group, group.rank() == 0 && is_worse) && parts_.stop_on_harm) end_ = End::kHarm;
  });
  return is_best;
}

int64_t Trainer::patience() const { return parts_.evaluation->settings().early_stopping_patience; }

BestOf Trainer::best_of() const {
  const EvaluationSettings& settings = parts_.evaluation->settings();
  return {settings.metric_for_best_model, settings.greater_is_better,
          parts_.evaluation->eval_set()};
}

/// After a resume: scores over another set, or of another metric, no longer serve as reference.
void Trainer::warn_about_changed_evaluation() {
  Terminal& terminal = parts_.log.terminal();
  if (!parts_.evaluation->settings().metric_for_best_model.empty()) {
    if (const auto text = parts_.state.progress.reset_best(best_of())) terminal.warn(*text);
  }
  const std::vector<LogEntry>& history = progress().log_history;
  const auto last = std::find_if(history.rbegin(), history.rend(),
                                 [](const LogEntry& entry) { return !entry.eval_set.empty(); });
  if (last == history.rend() || last->eval_set == parts_.evaluation->eval_set()) return;
  terminal.warn(
      fmt::format("the last evaluation, after step {}, was over {}; from now on it is {}: "
                  "the health line compares with the first evaluation over that set",
                  last->step, last->eval_set, parts_.evaluation->eval_set()));
}

RunState Trainer::run_state() const {
  return {.num_steps = parts_.mstep->num_steps(),
          .cursor = parts_.stream->cursor(),
          .open = parts_.buffer.state(),
          .waiting = parts_.packer.waiting(),
          .packing = parts_.packer.summary(),
          .evaluation_pending = evaluation_pending_,
          .log_interval = parts_.log.interval(),
          .fingerprint = parts_.fingerprint};
}

/// Writes a checkpoint of the current state: weights, optimizer, position in the data, open window,
/// carry buffer, trainer state. Every rank calls it.
/// @throws UserError (environment)
void Trainer::save() {
  run_phase(parts_.group, "save", [&] {
    RunLog& log = parts_.log;
    log.sync();  // after a power loss, the log must hold the steps of every checkpoint
    const StateShard part{parts_.group.rank(), parts_.group.size()};
    const auto write_state = [&](const std::string& directory) {
      write_state_shard(directory, {to_wire(run_state()), parts_.mstep->state_to_save()}, part);
    };
    const auto seal = [&](const std::string& directory) {
      write_state_manifest(directory, part.size);
    };
    log.note_saved(parts_.checkpoints.save(parts_.state, write_state, seal));
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
  parts_.bad_samples.drop_from(loaded.run);
  mstep().optimizer().load_state(loaded.optimizer, loaded.run.num_steps);
  stream().seek(loaded.run.cursor);
  buffer().restore(std::move(loaded.run.open));
  packer().restore(std::move(loaded.run.waiting), loaded.run.packing);
  evaluation_pending_ = loaded.run.evaluation_pending;
  parts_.log.restore(std::move(loaded.run.log_interval));
  parts_.state.progress = std::move(loaded.progress);
  *parts_.calibration = ScoreCalibration::read(loaded.path);
  if (parts_.evaluation != nullptr) warn_about_changed_evaluation();
  end_ = end_by_steps();
}

}  // namespace rematch
