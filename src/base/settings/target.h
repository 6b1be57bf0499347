#pragma once
#include <string>

#include "base/enum_names.h"

namespace rematch {

/// Distance between points, in bins, in the optimal transport.
enum class OtCost { kL1, kL2 };
constexpr auto names_of(OtCost) {
  return std::to_array<EnumName<OtCost>>({{OtCost::kL1, "l1"}, {OtCost::kL2, "l2"}});
}

/// Order of the entries of a rewritten answer.
enum class RewriteOrder {
  kTruth,  ///< order of the ground truth
  /// matched objects in the order of the rollout, then the others in the order of the ground truth
  kRollout,
  /// matched objects in the order of the rollout, each other one inserted by that of the ground
  /// truth; only where the answers' order has sorted the ground truth
  kOwn,
};
constexpr auto names_of(RewriteOrder) {
  using enum RewriteOrder;
  return std::to_array<EnumName<RewriteOrder>>(
      {{kTruth, "truth"}, {kRollout, "rollout"}, {kOwn, "own"}});
}

/// Use of an incomplete rollout's objects in a rewritten answer.
enum class IncompleteRollouts { kKeep, kEmpty };
constexpr auto names_of(IncompleteRollouts) {
  return std::to_array<EnumName<IncompleteRollouts>>(
      {{IncompleteRollouts::kKeep, "keep"}, {IncompleteRollouts::kEmpty, "empty"}});
}

/// Settings of targets (BEHAVIOUR 7); the names are keys under `custom.extra.rollout_matching`.
struct TargetSettings {
  std::string policy = "append";  ///< `target_policy`: a name in target_policies()
  RewriteOrder rewrite_order = RewriteOrder::kTruth;
  IncompleteRollouts incomplete_rollouts = IncompleteRollouts::kKeep;
  double rollout_share = 1;  ///< (0, 1]; share of the windows with rollouts (BEHAVIOUR 4.8)
  OtCost ot_cost = OtCost::kL2;
  double ot_epsilon = 10.0;  ///< > 0, bins; entropic regularization
  int ot_iters = 30;         ///< ≥ 1, Sinkhorn iterations

  bool operator==(const TargetSettings&) const = default;
};

}  // namespace rematch
