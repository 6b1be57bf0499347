#pragma once
#include <cstdint>
#include <functional>

#include "engine/rollout/engine.h"
#include "engine/rollout/offload.h"

namespace rematch {

/// Generates with one version of the weights. Offloads training state if the engine has its own
/// weights, syncs those, runs `body` as this rank's turn, releases the engine's caches and restores
/// the training state.
///
///     with_engine(engine, maybe_null, version, [&] { rollouts = engine.generate(…); });
///
/// If `body` throws, the training state is restored, and the engine keeps its caches.
/// @param offload  null: no offload
/// @param version  as for RolloutEngine::sync_weights()
/// @throws UserError (environment) when host or device memory is insufficient for the move; as
/// sync_weights() and `body`
void with_engine(RolloutEngine& engine, Offload* offload, int64_t version,
                 const std::function<void()>& body);

}  // namespace rematch
