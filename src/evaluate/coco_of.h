#pragma once
#include "base/metrics.h"
#include "estep/examiner.h"
#include "evaluate/coco.h"

namespace rematch {

/// Adds an examined sample: objects by their bounding boxes in pixels of the image, labels in canonical form.
void add_to_coco(const Examined& one, const LabelMatch& labels, CocoEvaluator& coco);

/// The scores under the names of observe/catalog (`coco_…`).
MetricsBag coco_metrics(const CocoScores& scores);

}  // namespace rematch
