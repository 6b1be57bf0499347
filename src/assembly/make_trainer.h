#pragma once
#include "assembly/observers.h"
#include "assembly/rollouts.h"
#include "assembly/session.h"
#include "ranks/group.h"
#include "train/trainer.h"

namespace rematch {

/// True when the run rolls out, in training or in evaluations.
bool needs_rollouts(const Settings& settings);
/// The session needs of a training. @param weights_dir  as SessionNeeds
SessionNeeds training_needs(const Settings& settings, Group* engine_ranks, std::string weights_dir);

/// Makes a trainer from the parts of a run. Every rank calls it, inside a phase.
/// @param rollouts  filled in; must outlive the trainer, like session, observers and group
/// @throws UserError as the parts
Trainer make_trainer(const Session& session, Observers& observers, Rollouts& rollouts, Group& group,
                     Fingerprint fingerprint);

}  // namespace rematch
