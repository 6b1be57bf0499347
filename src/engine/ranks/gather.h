#pragma once
#include <string>
#include <vector>

#include "base/window_order.h"
#include "base/wire.h"
#include "engine/ranks/group.h"

namespace rematch {

/// The values of all ranks, in rank order, on every rank.
/// @param mine  any type that base/wire.h supports
template <typename T>
std::vector<T> gather(Group& group, const T& mine) {
  if (group.is_alone()) return {mine};
  std::vector<T> all;
  for (const std::string& bytes : group.all_gather(to_wire(mine)))
    all.push_back(from_wire<T>(bytes));
  return all;
}

/// The value of rank 0, on every rank.
template <typename T>
T from_first_rank(Group& group, const T& mine) {
  if (group.is_alone()) return mine;
  return from_wire<T>(group.broadcast(group.rank() == 0 ? to_wire(mine) : std::string()));
}

}  // namespace rematch
