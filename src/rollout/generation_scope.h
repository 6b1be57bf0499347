#pragma once
#include <cstdint>

#include "rollout/engine.h"
#include "rollout/offload.h"

namespace rematch {

/// The scope in which an engine generates with one version of the weights. It offloads training
/// state if the engine has its own weights, and syncs those. finish() releases the engine's caches
/// and restores the training state. It is also an EngineTurn.
///
///     GenerationScope scope(engine, maybe_null, version);
///     engine.generate(…);
///     scope.finish();
///
/// If an exception leaves the scope, OffloadScope restores the training state; the engine keeps its
/// caches.
class GenerationScope {
 public:
  /// @param offload  null: no offload. @param version  as for RolloutEngine::sync_weights()
  /// @throws UserError (environment) when host memory is insufficient; as sync_weights()
  GenerationScope(RolloutEngine& engine, Offload* offload, int64_t version)
      : engine_(engine), turn_(engine), offload_(engine.holds_own_weights() ? offload : nullptr) {
    engine_.sync_weights(version);
  }

  /// Ends the turn, releases the engine's caches, then restores training state. @throws UserError
  /// as OffloadScope::restore
  void finish() {
    turn_.end();
    engine_.release();
    offload_.restore();
  }

 private:
  RolloutEngine& engine_;
  EngineTurn turn_;
  OffloadScope offload_;
};

}  // namespace rematch
