#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ranks/group.h"

namespace rematch {

/// Compares what must be the same on every rank with that of rank 0.
/// @param identity  pairs of a name that users know ("training.seed", "this build of Rematch") and
/// its value as text. Names "FILE: KEY" of one file are one problem
/// @throws UserError (environment) on every rank, naming each rank that differs, its host, and what
/// differs with both values
void meet(Group& group, const std::vector<std::pair<std::string, std::string>>& identity);

/// Name of this host.
std::string host_name();
/// True when a host's name leads to a loopback address only (127.0.0.0/8): no other host can use
/// it.
bool is_loopback(const std::string& host);

}  // namespace rematch
