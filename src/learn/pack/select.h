#pragma once
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/settings/pack.h"

namespace rematch {

/// "binpacking", "optimal" or "fifo".
/// @throws UserError (config) naming the alternatives and `training.packing: false`
PackingSelector packing_selector(const std::string& name);

/// Segments chosen for one row.
struct Selection {
  std::vector<int> indices;  ///< ascending, into the given lengths; contains 0, the oldest
  int64_t total = 0;         ///< sum of their lengths, ≤ packing_length

  bool operator==(const Selection&) const = default;
};

/// Chooses the segments of the next row. Always includes the oldest; the total is never below that
/// of kFifo; depends only on the arguments.
/// @param encoded_lens    tokens of each waiting segment, oldest first; each 1..packing_length;
/// empty gives an empty selection
/// @param packing_length  most tokens of a row, ≥ 1
/// Cost: kFifo O(n); kBinpacking O(n·bins); kOptimal O(n·packing_length) vectorised byte operations
/// and 2·√n tables of packing_length counts of 1 to 4 bytes (512 segments: about 0.5 ms).
/// @throws UserError (config) if kOptimal would need more than 1 GiB; REMATCH_CHECK on a length out
/// of range (insertion refuses those)
/// @source docs/contract/openspec/specs/rollout-matching-sft/spec.md, BEHAVIOUR 9.3
Selection select_segments(PackingSelector selector, std::span<const int> encoded_lens,
                          int packing_length);

/// Takes the items at ascending indices; the others wait, in their order.
template <typename Item>
std::vector<Item> take_chosen(const std::vector<int>& indices, std::vector<Item>& waiting) {
  std::vector<Item> taken, rest;
  for (int i = 0; i < std::ssize(waiting); ++i) {
    const bool is_chosen = taken.size() < indices.size() && indices[taken.size()] == i;
    (is_chosen ? taken : rest).push_back(std::move(waiting[i]));
  }
  waiting = std::move(rest);
  return taken;
}

}  // namespace rematch
