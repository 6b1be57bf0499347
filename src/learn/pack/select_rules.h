#pragma once
#include <span>

#include "learn/pack/select.h"

namespace rematch {

/// The rules of select_segments, which checks the arguments.
Selection select_fifo(std::span<const int> encoded_lens, int packing_length);
Selection select_binpacking(std::span<const int> encoded_lens, int packing_length);
/// @throws UserError (config) if it would need more than 1 GiB
Selection select_optimal(std::span<const int> encoded_lens, int packing_length);

/// Indices, from 1 on, of the segments no longer than `longest`: longest first, older first among
/// equals. Cost: O(n) for each byte of the lengths.
std::vector<int> longest_first(std::span<const int> encoded_lens, int64_t longest);

}  // namespace rematch
