#pragma once
#include <cstdint>

#include "rollout/engine.h"
#include "rollout/offload.h"

namespace rematch {

/// The scope in which an engine answers with the weights of one version: training state makes room
/// for an engine that holds its own weights, and the engine receives the training weights. finish()
/// undoes both. On several ranks it is also a turn (EngineTurn).
///
///     GenerationScope scope(engine, maybe_null, version);
///     engine.generate(…);
///     scope.finish();
///
/// After an exception the training state returns as the scope is left (OffloadScope); the engine
/// keeps its caches.
class GenerationScope {
 public:
  /// @param offload  null: nothing moves. @param version  as RolloutEngine::sync_weights
  /// @throws UserError (environment) when host memory is insufficient; whatever sync_weights throws
  GenerationScope(RolloutEngine& engine, Offload* offload, int64_t version)
      : engine_(engine), turn_(engine), offload_(engine.holds_own_weights() ? offload : nullptr) {
    engine_.sync_weights(version);
  }

  /// Ends the turn, releases the engine's caches, then brings training state back. @throws
  /// UserError as OffloadScope::restore
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
