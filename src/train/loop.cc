// Rollout-matching SFT, the whole algorithm:
//
//   for each accumulation window of data:
//     E-step (no grad)   images → rollouts → objects → matches → segments
//     pack               segments → rows; what does not fit waits
//     M-step × m_steps   rows → loss → gradients → one optimizer update each
//
// Stage 1 is the same algorithm with the ground truth in place of the rollouts.
#include "train/loop.h"

#include "base/interrupt.h"
#include "data/bad_sample.h"
#include "rollout/engine_failure.h"
#include "train/restore.h"

namespace rematch {
namespace {

/// Makes the next window's samples the current rows. After an exception the position in the data stream is unchanged.
void e_step(TrainParts& parts, MetricsBag& metrics) {
  const WindowCursor start = parts.windows.cursor();
  try {
    const WindowPlan plan = parts.windows.next();
    WindowSegments segments = parts.source.build(plan, metrics);
    const Span pack_time(metrics, "time/post_rollout_pack_s");
    Window window{.window_idx = plan.window_idx,
                  .epoch = plan.epoch,
                  .rows = parts.packer.rows_of(std::move(segments), metrics),
                  .is_partial = plan.is_partial};
    parts.buffer.open(std::move(window), plan.last_of_epoch, parts.state.global_step);
  } catch (...) {
    parts.windows.seek(start);
    throw;
  }
  if (parts.buffer.is_cut_short()) parts.log.note_partial_window();
}

void save(TrainParts& parts) { parts.log.note_saved(save_checkpoint(parts)); }

/// Saves the state and rethrows: an interrupted or failed run keeps everything that a resume needs.
[[noreturn]] void save_and_rethrow(TrainParts& parts) {
  save(parts);
  throw;
}

/// What follows from an evaluation.
struct Judgement {
  bool is_best = false;  ///< the best result so far
  bool stop = false;     ///< the run does harm and ends
};

Judgement evaluate(TrainParts& parts) {
  const EvaluationResult result = parts.evaluation->run(parts.log.terminal());
  const bool is_worse = parts.log.evaluation(parts.state, result, parts.evaluation->num_samples());
  return {.is_best = result.metric && parts.state.update_best(*result.metric, result.greater_is_better, parts.state.global_step),
          .stop = is_worse && parts.stop_on_harm};
}

/// Evaluates and saves what is due after an optimizer step. @return true when the run ends here though steps are left
bool evaluate_and_save(TrainParts& parts, bool evaluation_due, bool save_due) {
  Judgement judgement;
  parts.evaluation_pending = evaluation_due && parts.evaluation != nullptr;
  if (parts.evaluation_pending) {
    judgement = evaluate(parts);
    parts.evaluation_pending = false;
    save_due = save_due || judgement.stop || (judgement.is_best && parts.save_on_best && parts.cadence.may_save(parts.state.global_step));
  }
  if (save_due) save(parts);
  if (judgement.stop) parts.log.note_stopped_by_harm(parts.state);
  return judgement.stop;
}

}  // namespace

void train_loop(TrainParts& parts) {
  TrainerState& state = parts.state;
  if (parts.evaluate_first && state.global_step == 0 && state.log_history.empty()) evaluate(parts);
  bool stop = state.global_step >= parts.cadence.total_steps();
  // A resumed run whose last evaluation was interrupted repeats it first.
  if (parts.evaluation_pending) {
    stop = evaluate_and_save(parts, true, parts.cadence.after_step(state.global_step, false).save) || stop;
  }
  while (!stop) {
    MetricsBag metrics;
    try {
      const Span step_time(metrics, "time/step_s");
      if (!parts.buffer.is_open()) e_step(parts, metrics);
      parts.mstep.run(parts.buffer.window(), metrics);
    } catch (const Interrupted&) {
      save_and_rethrow(parts);  // in the E-step: no step on this window is done, the state is that of its start
    } catch (const NonFiniteLoss&) {
      save_and_rethrow(parts);
    } catch (const EngineFailure&) {
      save_and_rethrow(parts);
    } catch (const BadSample&) {
      save_and_rethrow(parts);
    }
    ++state.global_step;
    state.epoch = parts.cadence.epoch_at(state.global_step);
    const bool ends_epoch = parts.buffer.finish_step(metrics);
    if (!parts.buffer.is_open()) parts.cleanup.after_window();
    const Due due = parts.cadence.after_step(state.global_step, ends_epoch);
    parts.log.step(state, metrics, due.log);
    stop = due.stop;
    try {
      stop = evaluate_and_save(parts, due.evaluate, due.save || take_save_request()) || stop;
    } catch (const Interrupted&) {
      save_and_rethrow(parts);  // during the evaluation: the step itself is done
    } catch (const EngineFailure&) {
      save_and_rethrow(parts);
    } catch (const BadSample&) {
      save_and_rethrow(parts);
    }
    if (!stop && interrupt_requested()) {
      if (!due.save) save(parts);
      throw Interrupted{};
    }
  }
}

}  // namespace rematch
