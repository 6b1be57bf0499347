#include "learn/pack/stream_rows.h"

#include "base/error.h"

namespace rematch {
StreamRows pack_stream(std::span<const int64_t> order, std::span<const int> encoded_lens,
                       const StreamOptions& options) {
  REMATCH_CHECK(options.packing_length >= 1 && options.pack.buffer >= 1);
  StreamRows result;
  std::vector<int64_t> samples;  // that wait for a row, oldest first
  std::vector<int> lengths;
  size_t next = 0;
  int64_t last_total = 0;
  while (next < order.size() || !samples.empty()) {
    while (next < order.size() && std::ssize(samples) < options.pack.buffer) {
      const int64_t sample_idx = order[next++];
      REMATCH_CHECK(sample_idx >= 0 && sample_idx < std::ssize(encoded_lens));
      samples.push_back(sample_idx);
      lengths.push_back(encoded_lens[sample_idx]);
    }
    const Selection selection =
        select_segments(options.pack.selector, lengths, options.packing_length);
    result.rows.push_back(take_chosen(selection.indices, samples));
    take_chosen(selection.indices, lengths);
    REMATCH_CHECK(!result.rows.back().empty());
    last_total = selection.total;
  }
  if (result.rows.empty()) return result;
  const double last_fill = static_cast<double>(last_total) / options.packing_length;
  if (options.pack.drop_last && last_fill < options.pack.min_fill_ratio && result.rows.size() > 1) {
    result.num_dropped_samples = result.rows.back().size();
    result.rows.pop_back();
  }
  return result;
}

}  // namespace rematch
