#pragma once
#include "base/json.h"

namespace rematch {

/// Scores answers against the truth, under the names of `rematch eval`: `eval_rollout_…`, the same
/// at maskIoU gates 0.30 and 0.50 (`…_iou30`, `…_iou50`), `coco_…`, `coco_per_class`, `per_class`,
/// `per_count`, `num_samples` and the fields of learn/evaluate/confidence.h.
/// @param input  {"scenes": […], "options": {…}}. A scene is a line of an evaluation's
/// samples.jsonl: predictions, ground_truth, width and height in pixels, optionally the scores of
/// the predictions, and the parse status (in all scenes or in none). Options are those of matching,
/// and label_match.
/// @throws UserError (data, config) naming scene and field
Json score_scenes(const Json& input);

}  // namespace rematch
