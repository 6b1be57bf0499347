#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/world.h"

namespace rematch {

/// The ranks of a run, as the parts that need each other's numbers see them. Every rank calls the same functions in the same order.
/// Sums are added in rank order, so that every rank gets the same bits.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Replaces each value by its sum over the ranks. The spans have the same size on every rank.
  virtual void all_reduce(std::span<double> values) = 0;
  virtual void all_reduce(std::span<int64_t> values) = 0;
  /// The bytes of every rank, by rank, on rank 0; nothing on the others.
  virtual std::vector<std::string> gather(std::string bytes) = 0;
  /// The bytes of rank 0, on every rank.
  virtual std::string broadcast(std::string bytes) = 0;
  /// Returns when every rank has called it.
  virtual void barrier() = 0;
};

/// The group of a process that trains alone. One for the whole program; it holds no state.
Group& alone();

/// The group of this process among its peers. world_from_environment() refuses worlds of several ranks: they are not built yet.
Group& group_of(const World& world);

}  // namespace rematch
