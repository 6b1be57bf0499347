#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/target.h"

namespace rematch {

/// Parses "l1" or "l2".
/// @throws UserError (config) for anything else
OtCost ot_cost_from(std::string_view name);

/// Rejects options outside their ranges.
/// @throws UserError (config) naming the key
void check_target_options(const TargetSettings& options);

/// A point in bins.
struct BinPoint {
  double x = 0.0;
  double y = 0.0;
};

/// Moves each point of `from` to the mean of `to` under an entropic optimal transport plan
/// (Sinkhorn, uniform masses).
/// @param from,to  ≥ 1 point each
/// @return one point for each of `from`; not finite when the inputs are not
/// Cost: O(ot_iters · |from| · |to|).
/// @source M. Cuturi, "Sinkhorn Distances", 2013
std::vector<BinPoint> transport_points(const std::vector<BinPoint>& from,
                                       const std::vector<BinPoint>& to,
                                       const TargetSettings& options);

/// Rounds points to bins (half to even, clamped to 0..999), as x,y,x,y,…; nullopt when a coordinate
/// is not finite.
std::optional<std::vector<int>> rounded_bins(const std::vector<BinPoint>& points);

/// The target bins for the coord tokens of a matched prediction. For two boxes: the ground truth.
/// Otherwise the transported vertices; for a predicted box the bounding box of its transported
/// corners.
/// @return as many values as predicted.bins; nullopt when target construction fails (a non-finite
/// coordinate)
std::optional<std::vector<int>> coord_targets(const Geometry& predicted,
                                              const Geometry& ground_truth,
                                              const TargetSettings& options);

}  // namespace rematch
