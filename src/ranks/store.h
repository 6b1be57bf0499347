#pragma once
#include <c10/util/intrusive_ptr.h>

#include <functional>

#include "ranks/world.h"

namespace c10d {
class Store;
}

namespace rematch {

/// Runs `part`, which uses the ranks' store. @throws UserError (environment) in place of torch's
/// errors
void with_store(const World& world, const std::function<void()>& part);

/// The key-value store of the ranks, over TCP: rank 0 hosts it unless torchrun does. Its keys begin
/// with the run id, the number of restarts and the world's size, so no rank sees those of an
/// earlier attempt in the same store.
/// @throws UserError (environment) naming host and port when the port is taken (rank 0) or no one
/// answers within half a minute; or the limit of open files when it is too low (rank 0)
c10::intrusive_ptr<c10d::Store> open_store(const World& world);

}  // namespace rematch
