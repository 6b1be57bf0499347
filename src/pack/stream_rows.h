#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "pack/select.h"

namespace rematch {

/// How stage 1 packs the data stream.
struct StreamOptions {
  PackSettings pack;
  int packing_length = 0;  ///< tokens of a row (`global_max_length`), ≥ 1
};

/// An epoch of the data stream, packed.
struct StreamRows {
  /// in the order of selection; the samples of a row in the order of the stream
  std::vector<std::vector<int64_t>> rows;
  int64_t num_dropped_samples = 0;  ///< of the last row, when it is dropped
  double dropped_fill = 0;          ///< its tokens over packing_length
};

/// Packs whole samples of an epoch into rows (BEHAVIOUR 14). Up to `buffer` samples wait, in the
/// order of the stream; the selector takes a row of them, the stream refills their places, and so
/// on until none waits. No sample is carried into the next epoch. The last row is the one after
/// which none waits. It is dropped when drop_last is set and it is underfilled, unless it is the
/// epoch's only row: an epoch that trains nothing would never end a run.
/// @param order         sample indices of the epoch, each once
/// @param encoded_lens  tokens of each sample's segment, by sample index; each 1..packing_length
/// (longer ones are refused when measured) Cost: a selection over at most `buffer` samples for each
/// row.
StreamRows pack_stream(std::span<const int64_t> order, std::span<const int> encoded_lens,
                       const StreamOptions& options);

}  // namespace rematch
