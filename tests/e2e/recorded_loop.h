#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "e2e/recorded.h"
#include "learn/pack/packer.h"
#include "learn/train/loop.h"

namespace rematch::test {

/// The program's own training loop over recorded answers, with everything it did written down.
struct RecordedLoop {
  struct Options {
    int64_t num_steps = 1;
    WindowOptions windows;  ///< num_samples is filled in
    Packer::Options packing;
    RolloutBufferSettings buffer;
    int skip_longer_than = 0;  ///< tokens of segments that are left out; 0 = none are
    /// called with every row before it is trained; may be empty
    std::function<void(const PackedRow&)> on_row;
    /// called with the state that a checkpoint is written from; may be empty
    std::function<void(const WindowCursor&, const Packer&)> on_save;
  };
  /// The data and the log line of one optimizer step.
  struct Step {
    std::vector<PackedRow> rows;
    std::map<std::string, double> metrics;
  };

  std::vector<Step> steps;
  std::vector<int64_t> num_built;                       ///< segments, by window that rolled out
  std::vector<std::shared_ptr<const Segment>> waiting;  ///< left in the carry buffer
  std::string told;                                     ///< what the terminal showed

  /// Segments trained, by identity. Segments live as long as this record, so no address is used
  /// twice.
  std::map<const Segment*, int> times_trained() const;
};

/// @throws whatever the loop throws
RecordedLoop run_loop(RecordedStage2& stage2, RecordedLoop::Options options);

/// Sample ids of rows.
std::vector<std::vector<int64_t>> sample_ids(const std::vector<PackedRow>& rows);

}  // namespace rematch::test
