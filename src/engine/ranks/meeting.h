#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/ranks/group.h"

namespace rematch {

/// Compares the values of every rank with those of rank 0.
/// @param identity  pairs of a name that users know ("training.seed", "this build of Rematch") and
/// its value as text. All names "FILE: KEY" of one file are reported as one problem
/// @throws UserError (environment) on every rank, naming each rank that differs, its host, the name
/// and both values
void require_equal(Group& group, const std::vector<std::pair<std::string, std::string>>& identity);

/// True if a host's name resolves only to loopback addresses (127.0.0.0/8), which no other host can
/// reach.
bool is_loopback(const std::string& host);

}  // namespace rematch
