#pragma once
#include <optional>
#include <span>

#include "pack/select.h"

namespace rematch {

/// The rules of select_segments, which checks the arguments.
Selection select_fifo(std::span<const int> encoded_lens, int packing_length);
Selection select_binpacking(std::span<const int> encoded_lens, int packing_length);
Selection select_optimal(std::span<const int> encoded_lens, int packing_length);

/// Indices, from 1 on, of the segments no longer than `longest`: longest first, older first among
/// equals. Cost: O(n) for each byte of the lengths.
std::vector<int> longest_first(std::span<const int> encoded_lens, int64_t longest);

/// First attempt of select_optimal, by exchanges against the longest segments. Fast for many
/// segments, because then a full row of the fewest possible segments nearly always exists. Exact;
/// nullopt if it finds no such row.
std::optional<Selection> optimal_by_exchange(std::span<const int> encoded_lens, int packing_length);
/// Second attempt of select_optimal, by the fewest segments for every total; always succeeds.
/// @throws UserError (config) if it would need more than 1 GiB
Selection optimal_by_counts(std::span<const int> encoded_lens, int packing_length);

}  // namespace rematch
