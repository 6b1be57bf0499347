#pragma once
#include <optional>
#include <vector>

#include "estep/match/match_policy.h"
#include "flow/parsed.h"
#include "flow/sample.h"

namespace rematch {

/// Which earlier objects an object may repeat.
enum class RepeatOf {
  kAccepted,  ///< those that repeat none themselves
  kEarlier,   ///< all
};

/// Objects with the desc of an earlier one and a maskIoU of at least `iou` with it, ascending.
/// @param objects  descs trimmed. @param iou  (0, 1]. @param resolution  side of the maskIoU canvas
/// in pixels
std::vector<int> repeated_objects(const std::vector<SceneObject>& objects, double iou,
                                  int resolution, RepeatOf rule);

/// A matching for targets: what the objects of a rollout are after repeated ones were set aside
/// (`dedup_iou`, BEHAVIOUR 6.7).
struct TargetMatching {
  /// indices into all objects; those set aside are in none of its lists
  Matching matching;
  std::vector<int> deduplicated;  ///< objects that were set aside, ascending
};

/// Matches what is left when repeated objects are set aside; without `dedup_iou` nothing is.
/// @throws UserError as match_objects, and (config) for a dedup_iou out of (0, 1]
TargetMatching match_deduplicated(const std::vector<SceneObject>& predictions,
                                  const std::vector<SceneObject>& ground_truth,
                                  const MatchSettings& options, std::optional<double> dedup_iou);

}  // namespace rematch
