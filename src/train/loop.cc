// Rollout-matching SFT, the whole sentence:
//
//   for each accumulation window of data:
//     E-step (no grad)   images → rollouts → objects → matches → segments
//     pack               segments → rows
//     M-step             rows → loss → gradients → one optimizer update
//
// Stage 1 is the same sentence with the ground truth in the place of the rollouts.
#include "train/loop.h"

#include "base/interrupt.h"

namespace rematch {
namespace {

Window prepare_window(TrainParts& parts, const WindowPlan& plan, MetricsBag& metrics) {
  WindowSegments segments = parts.source.build(plan, metrics);
  const Span pack_time(metrics, "time/post_rollout_pack_s");
  return {.window_idx = plan.window_idx, .epoch = plan.epoch, .rows = parts.packer.rows_of(std::move(segments), metrics), .is_partial = plan.is_partial};
}

void save(TrainParts& parts) { parts.log.note_saved(parts.checkpoints.save(parts.state)); }

/// Evaluates; true when the result is the best so far.
bool evaluate(TrainParts& parts) {
  const EvaluationResult result = parts.evaluation->run(parts.log.terminal());
  parts.log.evaluation(parts.state, result);
  return result.metric && parts.state.update_best(*result.metric, result.greater_is_better, parts.state.global_step);
}

/// What is due after an optimizer step: log, evaluate, save.
void after_step(TrainParts& parts, const Due& due, const MetricsBag& metrics) {
  parts.log.step(parts.state, metrics, due.log);
  bool save_due = due.save;
  if (due.evaluate && parts.evaluation != nullptr) {
    const bool is_best = evaluate(parts);
    save_due = save_due || (is_best && parts.save_on_best && parts.cadence.may_save(parts.state.global_step));
  }
  if (save_due) save(parts);
}

/// State saved, then out: an interrupted or failed run leaves the last good weights behind.
[[noreturn]] void save_and_rethrow(TrainParts& parts) {
  save(parts);
  throw;
}

}  // namespace

void train_loop(TrainParts& parts) {
  TrainerState& state = parts.state;
  bool stop = false;
  while (!stop) {
    const WindowPlan plan = parts.windows.next();
    if (plan.micro_batches.empty()) continue;  // a rank without a share of a partial window
    MetricsBag metrics;
    {
      Span step_time(metrics, "time/step_s");
      try {
        const Window window = prepare_window(parts, plan, metrics);
        parts.mstep.run(window, metrics);
      } catch (const Interrupted&) {
        save_and_rethrow(parts);  // nothing of this window was learnt: the state is that of its start
      } catch (const NonFiniteLoss&) {
        save_and_rethrow(parts);
      }
    }
    ++state.global_step;
    state.epoch = parts.cadence.epoch_at(state.global_step);
    const Due due = parts.cadence.after_step(state.global_step, plan.last_of_epoch);
    try {
      after_step(parts, due, metrics);
    } catch (const Interrupted&) {
      save_and_rethrow(parts);  // during the evaluation: the step itself is done
    }
    stop = due.stop;
    if (!stop && interrupt_requested()) {
      if (!due.save) save(parts);
      throw Interrupted{};
    }
  }
}

}  // namespace rematch
