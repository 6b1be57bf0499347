#include "train/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/heap.h"
#include "base/interrupt.h"
#include "base/keeps_state.h"
#include "ranks/phase.h"
#include "rollout/generation_scope.h"

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

/// Throws the error that ended the run, extended by the reason why its state was not saved. Call it
/// in the handler of `unsaved`. After an interrupt, which promises a saved state, the failed save
/// is the error. If the save failed on another rank, that rank reports it.
[[noreturn]] void throw_with_cause(const std::exception_ptr& first, const UserError& unsaved,
                                   int64_t num_steps) {
  const std::exception_ptr second = std::current_exception();
  try {
    std::rethrow_exception(first);
  } catch (const UserError& cause) {
    if (dynamic_cast<const PeerFailure*>(&unsaved) != nullptr) throw;
    std::vector<Problem> problems = cause.problems();
    for (Problem& problem : save_problems(unsaved, num_steps))
      problems.push_back(std::move(problem));
    throw UserError(cause.kind(), std::move(problems));
  } catch (...) {
    std::rethrow_exception(second);
  }
}

bool keeps_state(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Interrupted&) {
    return true;
  } catch (const KeepsState&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Trainer::Trainer(TrainerParts parts) : TrainerParts(std::move(parts)) {
  is_done_ = state.global_step >= cadence.total_steps();
}

void Trainer::start() {
  run_phase(group, "evaluate", [&] {
    if (evaluate_first && state.global_step == 0 && state.log_history.empty()) evaluate();
    if (!evaluation_pending_) return;
    evaluate_and_save(true, cadence.after_step(state.global_step, false).save);
  });
}

void Trainer::untimed_phase(const char* name, const std::function<void()>& body) {
  const WindowCursor cursor = stream->cursor();
  const Packer packed = packer;
  is_saved_ = false;
  try {
    run_phase(group, name, body);
  } catch (...) {
    stream->rewind(cursor);
    packer = packed;
    if (keeps_state(std::current_exception()) && !is_saved_) save_after_failure();
    throw;
  }
}

void Trainer::save_after_failure() {
  const std::exception_ptr first = std::current_exception();
  try {
    save();
  } catch (const UserError& unsaved) {
    throw_with_cause(first, unsaved, state.global_step);
  }
}

bool Trainer::rolls_out(const WindowPlan& plan, MetricsBag& metrics) const {
  if (!rollouts) return false;
  const bool rolls = rematch::rolls_out(plan.window_idx, rollouts->share);
  metrics.add("rollout/is_rollout", rolls ? 1 : 0);
  return rolls;
}

std::vector<ScoredRollout> Trainer::prepare(const WindowPlan& plan) const {
  scorer().prefetch(plan.samples(), plan.epoch);
  return scorer().prepare(plan.samples(), plan.epoch);
}

void Trainer::roll_out(std::vector<ScoredRollout>& scored, const WindowPlan& plan,
                       MetricsBag& metrics) {
  group.barrier();  // no rank enters a shared engine after another one failed
  GenerationScope scope(rollouts->source.engine, rollouts->source.offload, plan.window_idx);
  rematch::roll_out(rollouts->source.engine, scored, metrics);
  scope.finish();
}

void Trainer::show(const std::vector<ScoredRollout>& scored) const {
  if (rollouts->on_rollouts) rollouts->on_rollouts(state.global_step + 1, scored);
}

void Trainer::open(OpenWindow window) {
  window.step0 = state.global_step;
  buffer.open(std::move(window));
  if (buffer.is_cut_short()) log.note_partial_window();
}

void Trainer::finish_step(StepMetrics& metrics) {
  ++state.global_step;
  state.epoch = cadence.epoch_at(state.global_step);
  const bool ends_epoch = buffer.finish_step(metrics);
  if (!buffer.is_open()) {
    if (features) features->clear();
    if (++num_windows_ % kWindowsPerCleaning == 0) give_back_free_memory();
  }

  const Due due = cadence.after_step(state.global_step, ends_epoch);
  if (!group.is_alone()) metrics.add("time/rank_wait_s", group.take_wait_s());
  log.step(state, gather_metrics(group, metrics), due.log, buffer.last_num_tokens());
  evaluate_and_save(due.evaluate, on_any_rank(group, take_save_request()) || due.save);
  is_done_ = due.stop || is_harmful_;
  if (is_done_ || !on_any_rank(group, interrupt_requested())) return;
  if (!is_saved_) save();
  throw Interrupted{};
}

void Trainer::evaluate_and_save(bool evaluation_due, bool save_due) {
  evaluation_pending_ = evaluation_due && evaluation != nullptr;
  if (evaluation_pending_) {
    const bool is_best = evaluate();
    evaluation_pending_ = false;
    const bool saves_best = is_best && save_on_best && cadence.may_save(state.global_step);
    save_due = save_due || is_harmful_ || saves_best;
  }
  if (save_due) save();
  if (is_harmful_) log.note_stopped_by_harm(state);
}

/// Evaluates, logs and compares with the start. @return true when the result is the best so far
bool Trainer::evaluate() {
  bool is_best = false;
  run_phase(group, "evaluate", [&] {
    const EvaluationResult result = evaluation->run(log.terminal());
    const bool is_worse = log.evaluation(state, result, evaluation->num_samples());
    is_best = result.metric &&
              state.update_best(*result.metric, result.greater_is_better, state.global_step);
    if (is_best) state.best_of = best_of();
    is_harmful_ = on_any_rank(group, group.rank() == 0 && is_worse) && stop_on_harm;
    is_done_ = is_done_ || is_harmful_;
  });
  return is_best;
}

BestOf Trainer::best_of() const {
  const EvaluationSettings& settings = evaluation->settings();
  return {settings.metric_for_best_model, settings.greater_is_better, evaluation->eval_set()};
}

/// After a resume: scores over another set, or of another metric, no longer serve as reference.
void Trainer::warn_about_changed_evaluation() {
  Terminal& terminal = log.terminal();
  if (!evaluation->settings().metric_for_best_model.empty()) {
    if (const auto text = state.reset_best(best_of())) terminal.warn(*text);
  }
  const auto last = std::find_if(state.log_history.rbegin(), state.log_history.rend(),
                                 [](const LogEntry& entry) { return !entry.eval_set.empty(); });
  if (last == state.log_history.rend() || last->eval_set == evaluation->eval_set()) return;
  terminal.warn(
      fmt::format("the last evaluation, after step {}, was over {}; from now on it is {}: "
                  "the health line compares with the first evaluation over that set",
                  last->step, last->eval_set, evaluation->eval_set()));
}

RunState Trainer::run_state() const {
  return {.num_steps = mstep->num_steps(),
          .cursor = stream->cursor(),
          .open = buffer.state(),
          .waiting = packer.waiting(),
          .packing = packer.summary(),
          .evaluation_pending = evaluation_pending_,
          .fingerprint = fingerprint};
}

void Trainer::save() {
  run_phase(group, "save", [&] {
    log.sync();  // after a power loss, the log must hold the steps of every checkpoint
    const StateShard part{group.rank(), group.size()};
    const auto write_state = [&](const std::string& directory) {
      write_state_shard(directory, {to_wire(run_state()), mstep->state_to_save()}, part);
    };
    const auto seal = [&](const std::string& directory) {
      write_state_manifest(directory, part.size);
    };
    log.note_saved(checkpoints.save(state, write_state, seal));
    log.require_in_place();  // last: if the run's directory was removed, its state is saved
  });
  is_saved_ = true;
}

void Trainer::restore(LoadedCheckpoint loaded) {
  bad_samples.drop_from(loaded.run);
  mstep->optimizer().load_state(loaded.optimizer, loaded.run.num_steps);
  stream->seek(loaded.run.cursor);
  buffer.restore(std::move(loaded.run.open));
  packer.restore(std::move(loaded.run.waiting), loaded.run.packing);
  evaluation_pending_ = loaded.run.evaluation_pending;
  state.global_step = loaded.trainer.global_step;
  state.epoch = loaded.trainer.epoch;
  state.num_input_tokens_seen = loaded.trainer.num_input_tokens_seen;
  state.best_metric = loaded.trainer.best_metric;
  state.best_global_step = loaded.trainer.best_global_step;
  state.best_model_checkpoint = std::move(loaded.trainer.best_model_checkpoint);
  state.best_of = std::move(loaded.trainer.best_of);
  state.kept_checkpoints = std::move(loaded.trainer.kept_checkpoints);
  state.log_history = std::move(loaded.trainer.log_history);
  if (evaluation != nullptr) warn_about_changed_evaluation();
  is_done_ = state.global_step >= cadence.total_steps();
}

}  // namespace rematch
