#pragma once
#include "base/json.h"
#include "estep/target/target_policy.h"

namespace rematch {

/// A segment and how it came about, as `rematch stage segment` and `rematch rollout` show it.
Json segment_json(const SegmentResult& result);

}  // namespace rematch
