#pragma once
#include <memory>
#include <vector>

#include "assembly/session.h"
#include "estep/roll_out.h"
#include "evaluate/evaluate.h"
#include "rollout/engine.h"
#include "rollout/offload.h"

namespace rematch {

/// The engine and the scorers of its answers; all null without rollouts. The session must outlive
/// it.
struct Rollouts {
  std::unique_ptr<Offload> offload;  ///< null when off or without effect
  std::unique_ptr<RolloutEngine> engine;
  std::unique_ptr<RolloutScorer> train_scorer;  ///< null without train data
  std::unique_ptr<RolloutScorer> val_scorer;    ///< null without validation data

  /// Needs an engine.
  RolloutSource source() const { return {*engine, offload.get()}; }
};

/// Starts the configured engine while training state is offloaded.
/// @param optimizer  returns the optimizer tensors to offload; empty outside training
/// @param mover      tests replace it
/// @throws UserError as make_engine()
Rollouts make_rollouts(const Session& session, Offload::Tensors optimizer = {},
                       std::unique_ptr<TensorMover> mover = make_tensor_mover());

/// Makes the evaluation on the session's val_data, which must exist. It scores rollouts if there is
/// a val_scorer, and with `teacher_forced` the loss on the full ground truth (stage 1).
/// @param rollouts     must outlive the evaluation, like the session
/// @param extra_gates  further IoU gates to score at
/// @param group        ranks that share the work
std::unique_ptr<Evaluation> make_evaluation(const Session& session, const Rollouts& rollouts,
                                            bool teacher_forced,
                                            std::vector<double> extra_gates = {},
                                            Group& group = alone());

}  // namespace rematch
