#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "learn/pack/stream_rows.h"

namespace rematch {

/// The samples of a stage-1 data stream and their lengths.
struct StreamSamples {
  int64_t num_samples = 0;  ///< ≥ 1
  /// tokens of a sample's segment in an epoch; may throw UserError
  std::function<int(int64_t sample_idx, int64_t epoch)> encoded_len;
  /// true if the length of a sample may differ between epochs
  bool vary_by_epoch = false;
};

/// Stage 1 with packing (BEHAVIOUR 14): measures the samples before training, and packs each epoch
/// into rows of whole samples.
///
///   StreamPacking packing({.num_samples = …, .encoded_len = …}, {.packing_length = 16000});
///   WindowStream windows({.num_samples = …, .cut = packing.cut()});
class StreamPacking {
 public:
  /// Called from time to time with the number of samples measured so far.
  using OnProgress = std::function<void(int64_t num_measured)>;

  /// Measures every sample of epoch 0.
  /// @param on_progress  may be empty
  /// @throws exceptions of encoded_len, e.g. for a sample longer than a row; Interrupted
  /// Cost: encoded_len of each sample, 16 to 27 microseconds for about 800 tokens.
  StreamPacking(StreamSamples samples, StreamOptions options, const OnProgress& on_progress = {});

  /// A CutEpoch of learn/data/windows.h that packs an epoch into rows; this object must outlive it.
  /// Cost: a selection for each row; with vary_by_epoch it also measures every sample of the epoch.
  auto cut() {
    return [this](const std::vector<int64_t>& order, int64_t epoch) {
      return pack_epoch(order, epoch);
    };
  }

  /// The line about the measured lengths at the start of a run.
  const std::string& start_text() const { return start_text_; }

  /// Options and lengths: together with the seed they determine the rows of every epoch. A run that
  /// resumes with a different fingerprint would repeat or skip samples.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Samples that packing_drop_last has dropped so far from the first `num_epochs` epochs.
  int64_t num_dropped_samples(int64_t num_epochs) const;

  /// The line about dropped samples at the end of a run; empty if there are none.
  std::string summary_text(int64_t num_epochs) const;

 private:
  void measure(int64_t epoch, const OnProgress& on_progress = {});
  std::vector<std::vector<int64_t>> pack_epoch(const std::vector<int64_t>& order, int64_t epoch);

  StreamSamples samples_;
  StreamOptions options_;
  std::string fingerprint_, start_text_;
  int64_t measured_epoch_ = -1;
  std::vector<int> encoded_lens_;     ///< of measured_epoch_, by sample index
  std::vector<int64_t> num_dropped_;  ///< by epoch
};

}  // namespace rematch
