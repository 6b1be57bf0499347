#include "train/after_step.h"

#include "dist/agreement.h"
#include "train/restore.h"

namespace rematch {
namespace {

/// What follows from an evaluation.
struct Judgement {
  bool is_best = false;  ///< the best result so far
  bool stop = false;     ///< the run does harm and ends
};

Judgement judge(TrainParts& parts) {
  parts.group.enter("evaluate");
  const EvaluationResult result = parts.evaluation->run(parts.log.terminal());
  bool is_worse = false;
  together(parts.group, [&] { is_worse = parts.log.evaluation(parts.state, result, parts.evaluation->num_samples()); });
  return {.is_best = result.metric && parts.state.update_best(*result.metric, result.greater_is_better, parts.state.global_step),
          .stop = on_any_rank(parts.group, parts.group.rank() == 0 && is_worse) && parts.stop_on_harm};
}

}  // namespace

void save(TrainParts& parts) {
  parts.group.enter("save");
  together(parts.group, [&] { parts.log.sync(); });  // a checkpoint that outlives a loss of power has the lines of its steps
  parts.log.note_saved(save_checkpoint(parts));
}

[[noreturn]] void save_and_rethrow(TrainParts& parts) {
  save(parts);
  throw;
}

bool evaluate_and_save(TrainParts& parts, bool evaluation_due, bool save_due) {
  Judgement judgement;
  parts.evaluation_pending = evaluation_due && parts.evaluation != nullptr;
  if (parts.evaluation_pending) {
    judgement = judge(parts);
    parts.evaluation_pending = false;
    save_due = save_due || judgement.stop || (judgement.is_best && parts.save_on_best && parts.cadence.may_save(parts.state.global_step));
  }
  if (save_due) save(parts);
  if (judgement.stop) parts.log.note_stopped_by_harm(parts.state);
  return judgement.stop;
}

void evaluate_start(TrainParts& parts) { judge(parts); }

}  // namespace rematch
