#include "train/after_step.h"

#include <exception>
#include <utility>

#include "ranks/phase.h"
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
  together(parts.group, [&] {
    is_worse = parts.log.evaluation(parts.state, result, parts.evaluation->num_samples());
  });
  return {
      .is_best = result.metric && parts.state.update_best(*result.metric, result.greater_is_better,
                                                          parts.state.global_step),
      .stop = on_any_rank(parts.group, parts.group.rank() == 0 && is_worse) && parts.stop_on_harm};
}

/// What a save could not do. Weights that are not finite before the first step are those that the
/// run was given.
std::vector<Problem> problems_of_save(const UserError& unsaved, int64_t num_steps) {
  std::vector<Problem> problems = unsaved.problems();
  if (num_steps > 0 || unsaved.kind() != ErrorKind::kData) return problems;
  problems.front().error =
      "the checkpoint that the run starts from is damaged: its weights are not finite";
  problems.front().fix = "download or convert model.model again, or start from another checkpoint";
  return problems;
}

/// Throws what ended the run, followed by why its state is not saved; call it where `unsaved` is
/// caught. An interrupt promises a saved state: after one the failed save is the error. A save that
/// failed on another rank is told by that rank.
[[noreturn]] void throw_with_cause(const std::exception_ptr& first, const UserError& unsaved,
                                   int64_t num_steps) {
  const std::exception_ptr of_save = std::current_exception();
  try {
    std::rethrow_exception(first);
  } catch (const UserError& cause) {
    if (dynamic_cast<const PeerFailure*>(&unsaved) != nullptr) throw;
    std::vector<Problem> problems = cause.problems();
    for (Problem& problem : problems_of_save(unsaved, num_steps))
      problems.push_back(std::move(problem));
    throw UserError(cause.kind(), std::move(problems));
  } catch (...) {
    std::rethrow_exception(of_save);
  }
}

}  // namespace

void save(TrainParts& parts) {
  parts.group.enter("save");
  // a checkpoint that outlives a loss of power has the lines of its steps
  together(parts.group, [&] { parts.log.sync(); });
  parts.log.note_saved(save_checkpoint(parts));
}

[[noreturn]] void save_and_rethrow(TrainParts& parts) {
  const std::exception_ptr first = std::current_exception();
  try {
    save(parts);
  } catch (const UserError& unsaved) {
    throw_with_cause(first, unsaved, parts.state.global_step);
  }
  throw;
}

bool evaluate_and_save(TrainParts& parts, bool evaluation_due, bool save_due) {
  Judgement judgement;
  parts.evaluation_pending = evaluation_due && parts.evaluation != nullptr;
  if (parts.evaluation_pending) {
    judgement = judge(parts);
    parts.evaluation_pending = false;
    save_due = save_due || judgement.stop ||
               (judgement.is_best && parts.save_on_best &&
                parts.cadence.may_save(parts.state.global_step));
  }
  if (save_due) save(parts);
  if (judgement.stop) parts.log.note_stopped_by_harm(parts.state);
  return judgement.stop;
}

void evaluate_start(TrainParts& parts) { judge(parts); }

}  // namespace rematch
