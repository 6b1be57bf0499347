#pragma once
#include <memory>
#include <set>
#include <string>

#include "base/error.h"
#include "base/flow/segment.h"
#include "base/keeps_state.h"
#include "base/metrics.h"
#include "base/observe/append_file.h"
#include "base/observe/terminal.h"
#include "base/settings/augment.h"
#include "engine/ranks/group.h"
#include "learn/data/dataset.h"
#include "learn/data/windows.h"
#include "learn/resume/run_state.h"
#include "model/vision/patches.h"
#include "model/vision/pixel_store.h"

namespace rematch {

/// An image became unusable after the initial check. Names the file and its record, or the data set
/// if all images of a window are unusable. The run saves its state and stops.
struct BadSample : KeepingError {
  using KeepingError::KeepingError;
};

/// Leaves out samples that cannot be trained on (`data.on_bad_sample`). With `stop` it does
/// nothing: a bad sample is an error where it occurs. With `skip` it warns once about each bad
/// sample and lists it, with a hash of its image files, in `skipped.jsonl` of the run directory.
/// Every rank calls the functions, inside a phase. Together the ranks train on the same window as
/// a single process.
class BadSamples {
 public:
  struct Options {
    bool skips = false;   ///< data.on_bad_sample: skip
    std::string run_dir;  ///< directory of skipped.jsonl
    int max_length = 0;   ///< most tokens of a segment from a rollout; 0 = no cap
    PatchOptions patches;
    AugmentSettings augment;
    uint64_t seed = 42;  ///< seed of augmentation
  };
  /// `data`, `pixels`, `terminal` and `group` must outlive this object.
  /// @throws UserError (environment) when skipped.jsonl cannot be written
  BadSamples(const Dataset& data, PixelStore& pixels, Terminal& terminal, Group& group,
             Options options);

  /// Decodes the images of a window before it is built, so that a bad image costs neither a rollout
  /// nor a step. Leaves out samples with unusable images, and redistributes the micro-batches that
  /// still hold a sample over the ranks.
  /// @throws BadSample (data) when no sample of the window is left on any rank
  WindowPlan drop_unreadable(WindowPlan plan, MetricsBag& metrics);
  /// Leaves out segments that a rollout made longer than max_length. Their rollouts still count in
  /// the step's rollout metrics.
  /// @throws BadSample (data) when none is left on any rank
  WindowSegments drop_too_long(WindowSegments segments, MetricsBag& metrics);
  /// Removes segments with bad images from the open window and the carry buffer of a resumed run.
  /// @throws BadSample (data) when no rank keeps a row of the window
  void drop_from(RunState& run);

 private:
  /// A sample with the augmentation of an epoch.
  Sample shown_sample(int64_t index, int64_t epoch) const;
  bool is_too_long(const Segment& segment);
  bool can_load(const std::vector<ImageRef>& images, const Sample& sample);
  void note(const Sample& sample, const UserError& error);
  [[noreturn]] void refuse_window(int64_t window_idx) const;

  const Dataset& data_;
  PixelStore& pixels_;
  Terminal& terminal_;
  Group& group_;
  Options options_;
  std::unique_ptr<AppendFile> list_;  ///< skipped.jsonl; null when bad samples are not skipped
  std::set<int64_t> noted_;
};

}  // namespace rematch
