#pragma once
#include <memory>
#include <optional>

#include "learn/pack/stream_packing.h"
#include "learn/resume/fingerprint.h"
#include "learn/train/trainer.h"
#include "program/assembly/engine.h"
#include "program/assembly/observers.h"

namespace rematch {

/// A training without its trainer. The job must outlive it.
struct Training {
  const Job& job;
  std::unique_ptr<StreamPacking> packing;  ///< of the training data; null unless stage 1 packs
  std::shared_ptr<Model> model;            ///< with its adapter, if one is trained
  std::optional<Engine> engine = {};       ///< nullopt without rollouts; make_trainer() starts it
};

/// Makes a trainer and starts the engine of its rollouts. Every rank calls it, inside a phase.
/// @param training  must outlive the trainer, like the observers
/// @throws UserError as the parts
Trainer make_trainer(Training& training, Observers& observers, Fingerprint fingerprint);

}  // namespace rematch
