#pragma once
#include <optional>
#include <span>

#include "pack/select.h"

namespace rematch {

/// The rules behind select_segments, one function each, with its arguments and result. Inputs are
/// checked there, not here.
Selection select_fifo(std::span<const int> encoded_lens, int packing_length);
Selection select_binpacking(std::span<const int> encoded_lens, int packing_length);
Selection select_optimal(std::span<const int> encoded_lens, int packing_length);

/// Indices 1 … n - 1 of the segments no longer than `longest`: longest first, the older first among
/// equals. Cost: O(n) for each byte of the lengths.
std::vector<int> longest_first(std::span<const int> encoded_lens, int64_t longest);

/// The two halves of select_optimal; both exact where they answer.
/// By exchanges against the longest segments: fast when there are many segments, because then a
/// full row of the fewest possible segments nearly always exists. @return nothing when no such row
/// was found.
std::optional<Selection> optimal_by_exchange(std::span<const int> encoded_lens, int packing_length);
/// By the fewest segments for every total: always has an answer. @throws UserError (config) when it
/// would need more than 1 GiB
Selection optimal_by_counts(std::span<const int> encoded_lens, int packing_length);

}  // namespace rematch
