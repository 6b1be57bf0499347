#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/wire.h"
#include "ranks/group.h"

namespace rematch {

/// The values of all ranks, in rank order, on every rank. @param mine  any type that base/wire.h
/// supports
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

/// Item 0 of each rank in rank order, then item 1 of each, …: window order, because the
/// micro-batches of a window are distributed round-robin. Ranks may have different numbers of
/// items.
template <typename T>
std::vector<T> in_window_order(std::vector<std::vector<T>> by_rank) {
  std::vector<T> all;
  for (size_t index = 0;; ++index) {
    const size_t before = all.size();
    for (std::vector<T>& items : by_rank) {
      if (index < items.size()) all.push_back(std::move(items[index]));
    }
    if (all.size() == before) return all;
  }
}

}  // namespace rematch
