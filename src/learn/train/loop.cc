// Rollout-matching SFT, the main loop:
//
//   window → roll out → parse → match → target → pack → update (m_steps times) → report
//
// Stage 1 runs the same loop, with the ground truth in place of rollouts. All ranks enter and leave
// a phase together. A phase measures its time. On an interrupt or a recoverable failure it saves
// the state of the run.
#include "learn/train/loop.h"

#include <utility>

#include "base/interrupt.h"

namespace rematch {
namespace {

WindowSegments segments_from_rollouts(Trainer& trainer, const WindowPlan& plan,
                                      StepMetrics& metrics) {
  std::vector<ScoredRollout> rollouts = trainer.prepare(plan);
  trainer.roll_out(rollouts, plan, metrics);
  for (ScoredRollout& rollout : rollouts) {
    trainer.parse(rollout, metrics);
    trainer.match(rollout, metrics);
  }
  trainer.show(rollouts);

  Segments segments;
  for (const ScoredRollout& rollout : rollouts)
    segments.push_back(trainer.make_target(rollout, metrics));
  return plan.split_by_micro_batch(std::move(segments));
}

OpenWindow make_window(Trainer& trainer, StepMetrics& metrics) {
  const WindowPlan plan = trainer.bad_samples().drop_unreadable(trainer.stream().next(), metrics);
  WindowSegments segments = trainer.rolls_out(plan, metrics)
                                ? segments_from_rollouts(trainer, plan, metrics)
                                : trainer.truth().build(plan);
  metrics.set_micro_batches(segments);
  segments = trainer.bad_samples().drop_too_long(std::move(segments), metrics);
  return {.window = {.window_idx = plan.window_idx,
                     .epoch = plan.epoch,
                     .rows = trainer.packer().pack(std::move(segments), metrics),
                     .is_partial = plan.is_partial},
          .last_of_epoch = plan.last_of_epoch};
}

}  // namespace

void train(Trainer& trainer) {
  trainer.start();
  while (!trainer.is_done()) {
    StepMetrics metrics;
    if (!trainer.buffer().is_open()) {
      OpenWindow window;
      trainer.phase("rollout", metrics, [&] { window = make_window(trainer, metrics); });
      trainer.open(std::move(window));
    }
    trainer.phase("update", metrics, [&] {
      trainer.prefetch_next();
      trainer.mstep().run(trainer.buffer().window(), metrics);
    });
    trainer.untimed_phase("report", [&] { trainer.finish_step(metrics); });
  }
  if (trainer.end() == End::kInterrupt) throw Interrupted{};
}

}  // namespace rematch
