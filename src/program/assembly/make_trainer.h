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
};

/// Makes a trainer, whose optimizer the engine offloads from now on. Every rank calls it, inside a
/// phase.
/// @param training  must outlive the trainer, like engine and observers
/// @param engine    nullopt without rollouts
/// @throws UserError as the parts
Trainer make_trainer(const Training& training, const std::optional<Engine>& engine,
                     Observers& observers, Fingerprint fingerprint);

}  // namespace rematch
