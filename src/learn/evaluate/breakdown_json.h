#pragma once
#include "base/json.h"
#include "learn/evaluate/breakdown.h"
#include "learn/evaluate/coco.h"

namespace rematch {

/// `per_class` of an evaluation: one object for each class, most truths first, with `coco_ap` if
/// COCO scores the class.
Json per_class_json(const Breakdown& breakdown, const CocoResult& coco);

/// `per_count` of an evaluation: one object for each range of object counts.
Json per_count_json(const Breakdown& breakdown);

}  // namespace rematch
