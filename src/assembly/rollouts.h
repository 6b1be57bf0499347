#pragma once
#include <memory>
#include <vector>

#include "assembly/session.h"
#include "estep/roll_out.h"
#include "evaluate/evaluate.h"
#include "rollout/engine.h"
#include "rollout/offload.h"

namespace rematch {

/// The engine and the scorers of its answers; all null without rollouts. The session
/// outlives it.
struct Rollouts {
  std::unique_ptr<Offload> offload;  ///< null when not enabled or without effect
  std::unique_ptr<RolloutEngine> engine;
  std::unique_ptr<RolloutScorer> train_scorer;  ///< null without train data
  std::unique_ptr<RolloutScorer> val_scorer;    ///< null without validation data

  /// Needs an engine.
  RolloutSource source() const { return {*engine, offload.get()}; }
};

/// Starts the configured engine, with training state out of its way.
/// @param optimizer  tensors that offload may move too; empty: nothing is trained. @param mover
/// tests replace it
/// @throws UserError as make_engine()
Rollouts make_rollouts(const Session& session, Offload::Tensors optimizer = {},
                       std::unique_ptr<TensorMover> mover = make_tensor_mover());

/// Evaluation of the session's val_data, which it has: rollouts when there is an engine; with
/// `teacher_forced`, the loss on the full ground truth too (stage 1).
/// @param rollouts     outlives the evaluation, as the session does
/// @param extra_gates  further IoU gates to score at. @param group  ranks that share the work
std::unique_ptr<Evaluation> make_evaluation(const Session& session, const Rollouts& rollouts,
                                            bool teacher_forced,
                                            std::vector<double> extra_gates = {},
                                            Group& group = alone());

}  // namespace rematch
