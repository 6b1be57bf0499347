#include "learn/pack/stream_packing.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "base/content_key.h"
#include "base/interrupt.h"

namespace rematch {

StreamPacking::StreamPacking(StreamSamples samples, StreamOptions options,
                             const OnProgress& on_progress)
    : samples_(std::move(samples)), options_(options) {
  measure(0, on_progress);
  std::string lengths;
  for (const int encoded_len : encoded_lens_) lengths += fmt::format("{} ", encoded_len);
  fingerprint_ =
      fmt::format("{}, buffer {}, min_fill_ratio {}, drop_last {}, {} lengths {}",
                  name_of(options_.pack.selector), options_.pack.buffer,
                  options_.pack.min_fill_ratio, options_.pack.drop_last,
                  samples_.vary_by_epoch ? "varying" : "fixed", content_hash_of(lengths));
  const int64_t total = std::accumulate(encoded_lens_.begin(), encoded_lens_.end(), int64_t{0});
  const int longest = *std::ranges::max_element(encoded_lens_);
  start_text_ = fmt::format(
      "packing the data stream: {} samples of {:.1f} tokens on average, {} at most, into rows of "
      "up to {}",
      samples_.num_samples, static_cast<double>(total) / samples_.num_samples, longest,
      options_.packing_length);
}

void StreamPacking::measure(int64_t epoch, const OnProgress& on_progress) {
  constexpr int64_t kSamplesPerProgress = 256;
  encoded_lens_.clear();
  measured_epoch_ = -1;
  for (int64_t sample_idx = 0; sample_idx < samples_.num_samples; ++sample_idx) {
    if (sample_idx % kSamplesPerProgress == 0) {
      throw_if_interrupted();
      if (on_progress) on_progress(sample_idx);
    }
    encoded_lens_.push_back(samples_.encoded_len(sample_idx, epoch));
  }
  measured_epoch_ = epoch;
  if (on_progress) on_progress(samples_.num_samples);
}

std::vector<std::vector<int64_t>> StreamPacking::pack_epoch(const std::vector<int64_t>& order,
                                                            int64_t epoch) {
  throw_if_interrupted();
  if (samples_.vary_by_epoch && measured_epoch_ != epoch) measure(epoch);
  StreamRows packed = pack_stream(order, encoded_lens_, options_);
  num_dropped_.resize(std::max<size_t>(num_dropped_.size(), epoch + 1));
  num_dropped_[epoch] = packed.num_dropped_samples;
  return std::move(packed.rows);
}

int64_t StreamPacking::num_dropped_samples(int64_t num_epochs) const {
  const auto epochs = num_dropped_ | std::views::take(std::max<int64_t>(0, num_epochs));
  return std::accumulate(epochs.begin(), epochs.end(), int64_t{0});
}

std::string StreamPacking::summary_text(int64_t num_epochs) const {
  const int64_t num_dropped = num_dropped_samples(num_epochs);
  if (num_dropped == 0) return {};
  return fmt::format(
      "packing: {} samples of {} epochs were dropped with an underfilled last row; "
      "training.packing_drop_last: false keeps it",
      num_dropped, num_epochs);
}

}  // namespace rematch
