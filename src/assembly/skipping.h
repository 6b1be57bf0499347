#pragma once
#include <memory>

#include "assembly/session.h"
#include "dist/group.h"
#include "estep/segment_source.h"
#include "resume/run_state.h"

namespace rematch {

/// With `data.on_bad_sample: skip` a source that leaves bad samples out, warns about each and lists it with a hash of its image files in
/// `skipped.jsonl` of the run directory; otherwise `source` itself. Session and group outlive it. @throws UserError (environment)
std::unique_ptr<SegmentSource> skipping_bad_samples(std::unique_ptr<SegmentSource> source, const Session& session, Group& group);

/// With `data.on_bad_sample: skip` leaves the segments of bad images out of a resumed run's open window and of those that wait for a row,
/// warned about and listed likewise. @throws UserError (data) when nothing is left of the window; (environment)
void drop_bad_segments(RunState& run, const Session& session);

}  // namespace rematch
