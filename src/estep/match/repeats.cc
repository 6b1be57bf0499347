#include "estep/match/repeats.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "estep/match/maskiou.h"

namespace rematch {

std::vector<int> repeated_objects(const std::vector<SceneObject>& objects, double iou,
                                  int resolution, RepeatOf rule) {
  const std::vector<Geometry> geometries = geometries_of(objects);
  MaskCache masks(geometries, resolution);
  std::vector<int> repeated, candidates;
  for (int i = 0; i < static_cast<int>(objects.size()); ++i) {
    const bool repeats = std::any_of(candidates.begin(), candidates.end(), [&](int earlier) {
      return objects[static_cast<size_t>(i)].desc == objects[static_cast<size_t>(earlier)].desc &&
             mask_iou(geometries[static_cast<size_t>(i)], masks.of(i),
                      geometries[static_cast<size_t>(earlier)], masks.of(earlier)) >= iou;
    });
    if (repeats) repeated.push_back(i);
    if (!repeats || rule == RepeatOf::kEarlier) candidates.push_back(i);
  }
  return repeated;
}

TargetMatching match_deduplicated(const std::vector<SceneObject>& predictions,
                                  const std::vector<SceneObject>& ground_truth,
                                  const MatchSettings& options, std::optional<double> dedup_iou) {
  check_match_options(options);
  if (!dedup_iou) return {match_objects(predictions, ground_truth, options), {}};
  if (!(*dedup_iou > 0.0 && *dedup_iou <= 1.0)) {
    throw UserError(ErrorKind::kConfig, {.error = "dedup_iou is out of range",
                                         .where = "custom.extra.rollout_matching.dedup_iou",
                                         .what = fmt::format("dedup_iou = {}", *dedup_iou),
                                         .fix = "set it to a number in (0, 1], or null"});
  }
  TargetMatching result;
  result.deduplicated =
      repeated_objects(predictions, *dedup_iou, options.maskiou_resolution, RepeatOf::kAccepted);
  std::vector<int> kept;  // position among those that are left → position among all
  std::vector<SceneObject> left;
  for (int i = 0; i < static_cast<int>(predictions.size()); ++i) {
    if (std::binary_search(result.deduplicated.begin(), result.deduplicated.end(), i)) continue;
    kept.push_back(i);
    left.push_back(predictions[static_cast<size_t>(i)]);
  }
  result.matching = match_objects(left, ground_truth, options);
  for (auto& pair : result.matching.pairs) pair.first = kept[static_cast<size_t>(pair.first)];
  for (int& prediction : result.matching.false_positives)
    prediction = kept[static_cast<size_t>(prediction)];
  return result;
}

}  // namespace rematch
