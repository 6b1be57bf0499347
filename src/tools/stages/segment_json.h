#pragma once
#include "base/json.h"
#include "learn/estep/teach/target_policy.h"

namespace rematch {

/// Converts a segment to the JSON of `rematch stage segment` and `rematch rollout`.
Json segment_json(const SegmentResult& result);

}  // namespace rematch
