#pragma once
#include <vector>

#include "base/flow/parsed.h"
#include "base/flow/sample.h"
#include "base/settings/match.h"

namespace rematch {

/// Rejects options outside their ranges.
/// @throws UserError (config) naming the key
void check_match_options(const MatchSettings& options);

/// The ground truths to compare with one prediction, best first: by (−AABB IoU, index), or by
/// (squared distance of the centres, index) when no box overlaps it. Cost: O(G log top_k).
std::vector<int> find_candidates(const Geometry& prediction,
                                 const std::vector<Geometry>& ground_truth, int top_k);

/// Pairs predictions with ground truths: candidates by bounding box, the maskIoU gate, then the
/// assignment of least cost, where unmatched objects cost `fp_cost` and `fn_cost`.
/// @param predictions,ground_truth  geometries with ≥ 1 vertex; coordinates outside 0..999 are
/// clamped for the masks
/// @return pairs in order of prediction
/// @throws UserError (config) for options out of range
/// Cost: one rasterisation per geometry, P·top_k mask comparisons, an assignment of size P+G.
Matching match(const std::vector<Geometry>& predictions, const std::vector<Geometry>& ground_truth,
               const MatchSettings& options);

}  // namespace rematch
