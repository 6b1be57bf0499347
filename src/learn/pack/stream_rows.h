#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "learn/pack/select.h"

namespace rematch {

/// Options of packing the stage-1 data stream.
struct StreamOptions {
  PackSettings pack;
  int packing_length = 0;  ///< tokens of a row (`global_max_length`), ≥ 1
};

/// An epoch of the data stream, packed.
struct StreamRows {
  /// in the order of selection; the samples of a row in the order of the stream
  std::vector<std::vector<int64_t>> rows;
  int64_t num_dropped_samples = 0;  ///< samples of the last row, if it is dropped
};

/// Packs whole samples of an epoch into rows (BEHAVIOUR 14). Up to `buffer` samples wait, in stream
/// order; the selector takes a row of them and the stream refills the buffer, until no sample
/// waits. No sample is carried into the next epoch. With drop_last an underfilled last row is
/// dropped, unless it is the epoch's only row: an epoch without rows would never end a run. Cost: a
/// selection over at most `buffer` samples for each row.
/// @param order         sample indices of the epoch, each once
/// @param encoded_lens  tokens of each sample's segment, by sample index; each 1..packing_length
StreamRows pack_stream(std::span<const int64_t> order, std::span<const int> encoded_lens,
                       const StreamOptions& options);

}  // namespace rematch
