#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/metrics.h"
#include "data/dataset.h"
#include "data/windows.h"
#include "flow/segment.h"
#include "observe/append_file.h"
#include "observe/terminal.h"
#include "ranks/group.h"
#include "resume/run_state.h"
#include "vision/patches.h"
#include "settings/augment.h"
#include "vision/pixel_store.h"

namespace rematch {

/// Leaves out samples that cannot be trained on (`data.on_bad_sample`). With `stop` it does
/// nothing: they are errors where they occur. With `skip` they are left out: each is warned about
/// once and listed with a hash of its image files in `skipped.jsonl` of the run directory. Every
/// rank calls the functions, inside a phase; all ranks together then train on the window of one
/// process.
class BadSamples {
 public:
  struct Options {
    bool skips = false;   ///< data.on_bad_sample: skip
    std::string run_dir;  ///< of skipped.jsonl
    int max_length = 0;   ///< of a segment from a rollout, in tokens; 0 = none
    PatchOptions patches;
    AugmentSettings augment;
    uint64_t seed = 42;  ///< of augmentation
  };
  /// `data`, `pixels`, `terminal` and `group` outlive it. @throws UserError (environment) when the
  /// list cannot be written
  BadSamples(const Dataset& data, PixelStore& pixels, Terminal& terminal, Group& group,
             Options options);

  /// Decodes the images of a window before it is built, so that a bad one costs neither a rollout
  /// nor a step, and leaves out the samples whose images cannot be used. Micro-batches that keep a
  /// sample are distributed again over the ranks.
  /// @throws BadSample (data) when no sample of the window is left on any rank
  WindowPlan drop_unreadable(WindowPlan plan, MetricsBag& metrics);
  /// Leaves out the segments that a rollout made longer than max_length; their rollouts remain in
  /// the step's rollout metrics. @throws BadSample (data) when none is left on any rank
  WindowSegments drop_too_long(WindowSegments segments, MetricsBag& metrics);
  /// Leaves the segments of bad images out of a resumed run's open window and of those that wait
  /// for a row. @throws UserError (data) when no rank keeps a row of the window
  void drop_from(RunState& run);

 private:
  /// The sample as an epoch shows it.
  Sample shown_sample(int64_t index, int64_t epoch) const;
  bool is_readable(const Sample& sample);
  bool is_readable(const Segment& segment);
  bool is_too_long(const Segment& segment);
  bool can_load(const std::vector<ImageRef>& images, const Sample& sample);
  void note(const Sample& sample, const UserError& error);

  const Dataset& data_;
  PixelStore& pixels_;
  Terminal& terminal_;
  Group& group_;
  Options options_;
  std::unique_ptr<AppendFile> list_;  ///< null: bad samples are not skipped
  std::set<int64_t> noted_;
};

}  // namespace rematch
