#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>

#include "engine/ranks/world.h"

namespace c10d {
class Store;
}

namespace rematch {

/// Runs `body`, which uses the ranks' store, and turns torch's errors into UserError (environment).
void with_store(const World& world, const std::function<void()>& body);

/// The key-value store of the ranks, over TCP: rank 0 hosts it unless torchrun does. Its keys begin
/// with the run id, the number of restarts and the world's size, so no rank sees those of an
/// earlier attempt in the same store.
/// @param patience  waits no longer than this, nor longer than half a minute
/// @throws UserError (environment) naming host and port if the port is taken (rank 0) or no one
/// answers in time; naming the limit of open files if it is too low (rank 0)
c10::intrusive_ptr<c10d::Store> open_store(const World& world, std::chrono::seconds patience);

}  // namespace rematch
