#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pack/stream_rows.h"

namespace rematch {

/// The samples of a stage-1 data stream, by length.
struct StreamSamples {
  int64_t num_samples = 0;  ///< ≥ 1
  /// tokens of a sample's segment in an epoch; may throw UserError
  std::function<int(int64_t sample_idx, int64_t epoch)> encoded_len;
  /// the length of a sample may differ between epochs
  bool vary_by_epoch = false;
};

/// Stage 1 with packing (BEHAVIOUR 14): measures the samples before training, and cuts each epoch
/// into rows of whole samples.
///
///   StreamPacking packing({.num_samples = …, .encoded_len = …}, {.packing_length = 16000});
///   WindowStream windows({.num_samples = …, .cut = packing.cut()});
class StreamPacking {
 public:
  /// Called now and then with the number of samples measured so far.
  using OnProgress = std::function<void(int64_t num_measured)>;

  /// Measures every sample of epoch 0. @param on_progress  may be empty
  /// @throws what encoded_len throws, e.g. for a sample longer than a row; Interrupted
  /// Cost: encoded_len of each sample, 16 to 27 microseconds for some 800 tokens.
  StreamPacking(StreamSamples samples, StreamOptions options, const OnProgress& on_progress = {});

  /// Cuts epochs into rows, as a CutEpoch of data/windows.h; calls back into this object, which
  /// outlives it.
  /// Cost: a selection for each row; with vary_by_epoch every sample of the epoch is measured too.
  auto cut() {
    return
        [this](const std::vector<int64_t>& order, int64_t epoch) { return rows_of(order, epoch); };
  }

  /// The line about the measured lengths at the start of a run.
  const std::string& start_text() const { return start_text_; }

  /// What determines the rows of every epoch, in addition to the seed: options and lengths. A run
  /// resumed with a different one would repeat samples or skip some.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Samples that packing_drop_last dropped from the first `num_epochs` epochs, as far as these
  /// have been cut.
  int64_t num_dropped_samples(int64_t num_epochs) const;

  /// The line about them at the end of a run; empty when there are none.
  std::string summary_text(int64_t num_epochs) const;

 private:
  void measure(int64_t epoch, const OnProgress& on_progress = {});
  std::vector<std::vector<int64_t>> rows_of(const std::vector<int64_t>& order, int64_t epoch);

  StreamSamples samples_;
  StreamOptions options_;
  std::string fingerprint_, start_text_;
  int64_t measured_epoch_ = -1;
  std::vector<int> encoded_lens_;     ///< of measured_epoch_, by sample index
  std::vector<int64_t> num_dropped_;  ///< by epoch
};

}  // namespace rematch
