#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <string>

#include "ranks/world.h"

namespace c10d {
class Store;
}

namespace rematch {

/// Does `part`, which talks to the ranks' store. @throws UserError (environment) in place of
/// torch's errors
void with_store(const std::string& where, const std::function<void()>& part);
/// Sees that this process may open the files that hosting the store takes. @throws UserError
/// (environment) naming limit and need
void reserve_descriptors(int num_ranks);

/// The key-value store of the ranks, over TCP: rank 0 hosts it unless the launcher does. Its keys
/// begin with the launcher's run id, its count of restarts and the world's size, so that those of
/// an earlier attempt in the same store are never seen.
/// @param patience  how long an attempt to reach rank 0 may take; there are two
/// @throws UserError (environment) naming host and port when the port is taken (rank 0) or nobody
/// answers in time
c10::intrusive_ptr<c10d::Store> open_store(
    const World& world, std::chrono::seconds patience = std::chrono::seconds(15));

}  // namespace rematch
