#pragma once
#include <vector>

#include "base/flow/sample.h"
#include "base/json_fields.h"
#include "base/metrics.h"
#include "learn/estep/match/labels.h"
#include "learn/evaluate/coco.h"

namespace rematch {

/// Converts objects to bounding boxes in pixels of the image, with canonical labels.
/// @param scores  one for each object, or empty
std::vector<LabelledBox> labelled_boxes(const Objects& objects, int width_px, int height_px,
                                        const LabelMatch& labels,
                                        const std::vector<double>& scores = {});

/// Reads `scores` of a scene: absent, or a number from 0 to 1 for each prediction. `raw_scores` may
/// stand next to it.
/// @throws UserError (data) naming the scene
std::vector<double> read_scores(JsonFields& scene, size_t num_predictions);

/// The scores under the names of base/observe/catalog (`coco_…`).
MetricsBag coco_metrics(const CocoScores& scores);

/// {label: {ap, ap50, ap75, ar_100}}; an empty object without classes.
Json coco_per_class_json(const CocoResult& coco);

}  // namespace rematch
