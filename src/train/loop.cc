// Rollout-matching SFT, the whole algorithm:
//
//   for each accumulation window of data:
//     E-step (no grad)   images → rollouts → objects → matches → segments
//     pack               segments → rows; what does not fit waits
//     M-step × m_steps   rows → loss → gradients → one optimizer update each
//
// Stage 1 is the same algorithm with the ground truth in place of the rollouts. Several ranks take
// the micro-batches of a window in turn; what any of them may fail in, they do together, so that
// all go on or none.
#include "train/loop.h"

#include "base/interrupt.h"
#include "base/keeps_state.h"
#include "ranks/phase.h"
#include "train/after_step.h"
#include "train/rank_metrics.h"

namespace rematch {
namespace {

/// Makes the next window's samples the current rows; returns the segments of each micro-batch.
/// After an exception the position in the data stream and the carry buffer are unchanged.
std::vector<size_t> e_step(TrainParts& parts, MetricsBag& metrics) {
  const WindowCursor start = parts.windows.cursor();
  const Packer packer = parts.packer;
  WindowPlan plan;
  WindowSegments segments;
  std::vector<size_t> micro_batches;
  Window window;
  try {
    parts.group.enter("rollout");
    // before build(), in which ranks talk to each other
    together(parts.group, [&] { plan = parts.windows.next(); });
    together(parts.group, [&] { segments = parts.source.build(plan, metrics); });
    for (const auto& of_micro_batch : segments) micro_batches.push_back(of_micro_batch.size());
    if (parts.long_segments) parts.long_segments->leave_out(segments, metrics);
    parts.group.enter("pack");
    const Span pack_time(metrics, "time/post_rollout_pack_s");
    together(parts.group, [&] {
      window = {.window_idx = plan.window_idx,
                .epoch = plan.epoch,
                .rows = parts.packer.rows_of(std::move(segments), metrics),
                .is_partial = plan.is_partial};
    });
  } catch (...) {
    parts.windows.seek(start);
    parts.packer = packer;
    throw;
  }
  parts.buffer.open(std::move(window), plan.last_of_epoch, parts.state.global_step);
  if (parts.buffer.is_cut_short()) parts.log.note_partial_window();
  return micro_batches;
}

}  // namespace

void train_loop(TrainParts& parts) {
  TrainerState& state = parts.state;
  if (parts.evaluate_first && state.global_step == 0 && state.log_history.empty())
    evaluate_start(parts);
  bool stop = state.global_step >= parts.cadence.total_steps();
  // A resumed run whose last evaluation was interrupted repeats it first.
  if (parts.evaluation_pending) {
    stop =
        evaluate_and_save(parts, true, parts.cadence.after_step(state.global_step, false).save) ||
        stop;
  }
  while (!stop) {
    MetricsBag metrics;
    std::vector<size_t> micro_batches;
    try {
      const Span step_time(metrics, "time/step_s");
      if (!parts.buffer.is_open()) micro_batches = e_step(parts, metrics);
      run_phase(parts.group, "update", [&] { parts.mstep.run(parts.buffer.window(), metrics); });
    } catch (const Interrupted&) {
      // in the E-step: no step on this window is done, the state is that of its start
      save_and_rethrow(parts);
    } catch (const KeepsState&) {
      save_and_rethrow(parts);
    }
    ++state.global_step;
    state.epoch = parts.cadence.epoch_at(state.global_step);
    const bool ends_epoch = parts.buffer.finish_step(metrics);
    if (!parts.buffer.is_open()) parts.cleanup.after_window();
    const Due due = parts.cadence.after_step(state.global_step, ends_epoch);
    parts.group.enter("log");
    if (!parts.group.is_alone()) metrics.add("time/rank_wait_s", parts.group.take_wait_s());
    metrics = gather_metrics(parts.group, metrics, micro_batches);
    together(parts.group, [&] { parts.log.step(state, metrics, due.log); });
    stop = due.stop;
    try {
      stop = evaluate_and_save(parts, due.evaluate,
                               on_any_rank(parts.group, take_save_request()) || due.save) ||
             stop;
    } catch (const Interrupted&) {
      save_and_rethrow(parts);  // during the evaluation: the step itself is done
    } catch (const KeepsState&) {
      save_and_rethrow(parts);
    }
    if (!stop && on_any_rank(parts.group, interrupt_requested())) {
      if (!due.save) save(parts);
      throw Interrupted{};
    }
  }
}

}  // namespace rematch
