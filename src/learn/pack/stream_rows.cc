#include "learn/pack/stream_rows.h"

#include "base/error.h"

namespace rematch {
namespace {

// The samples waiting for a row, oldest first, with their lengths.
struct Waiting {
  std::vector<int64_t> samples;
  std::vector<int> lengths;

  void push(int64_t sample_idx, int length) {
    samples.push_back(sample_idx);
    lengths.push_back(length);
  }

  // Removes the samples at ascending `indices`; the others keep their order.
  std::vector<int64_t> take(const std::vector<int>& indices) {
    std::vector<int64_t> taken;
    size_t kept = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (taken.size() < indices.size() && indices[taken.size()] == static_cast<int>(i)) {
        taken.push_back(samples[i]);
        continue;
      }
      samples[kept] = samples[i];
      lengths[kept++] = lengths[i];
    }
    samples.resize(kept);
    lengths.resize(kept);
    return taken;
  }
};

}  // namespace

StreamRows pack_stream(std::span<const int64_t> order, std::span<const int> encoded_lens,
                       const StreamOptions& options) {
  REMATCH_CHECK(options.packing_length >= 1 && options.pack.buffer >= 1);
  StreamRows result;
  Waiting waiting;
  size_t next = 0;
  int64_t last_total = 0;
  while (next < order.size() || !waiting.samples.empty()) {
    while (next < order.size() &&
           waiting.samples.size() < static_cast<size_t>(options.pack.buffer)) {
      const int64_t sample_idx = order[next++];
      REMATCH_CHECK(sample_idx >= 0 && static_cast<size_t>(sample_idx) < encoded_lens.size());
      waiting.push(sample_idx, encoded_lens[sample_idx]);
    }
    const Selection selection =
        select_segments(options.pack.selector, waiting.lengths, options.packing_length);
    result.rows.push_back(waiting.take(selection.indices));
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
