#pragma once
#include <functional>

#include "engine/ranks/group.h"

namespace rematch::test {

/// Runs `body` on `size` ranks, which are threads of this process that talk over the loopback
/// interface, each with one thread for tensors. An exception of a rank is rethrown when
/// all have ended (that of the lowest rank).
void run_ranks(int size, const std::function<void(Group&)>& body);

}  // namespace rematch::test
