#pragma once
#include <memory>

#include "assembly/session.h"
#include "ranks/group.h"
#include "estep/segment_source.h"
#include "resume/run_state.h"
#include "train/long_segments.h"

namespace rematch {

/// What `data.on_bad_sample: skip` does to a run; with `stop`, nothing. Every bad sample is warned
/// about once, and listed with a hash of its image files in `skipped.jsonl` of the run directory.
class Skipping {
 public:
  /// Session and group outlive it. Every rank makes one. @throws UserError (environment) when the
  /// list cannot be written
  Skipping(const Session& session, Group& group);
  ~Skipping();
  Skipping(const Skipping&) = delete;

  /// A source that leaves bad samples out, which this object outlives; or `source` itself. @throws
  /// UserError (environment)
  std::unique_ptr<SegmentSource> source(std::unique_ptr<SegmentSource> source);
  /// What leaves the segments out that stage 2 makes too long; null when none are. This object
  /// outlives it.
  std::unique_ptr<const LongSegments> long_segments();
  /// Leaves the segments of bad images out of a resumed run's open window and of those that wait
  /// for a row. Every rank calls it.
  /// @throws UserError (data) when no rank keeps a row of the window; (environment)
  void drop_from(RunState& run);

 private:
  class List;

  bool is_bad(const Segment& segment);

  const Session& session_;
  Group& group_;
  std::unique_ptr<List> list_;  ///< null: bad samples are not skipped
};

}  // namespace rematch
