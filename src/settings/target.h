#pragma once
#include "base/enum_names.h"

namespace rematch {

/// Distance between points, in bins.
enum class OtCost { kL1, kL2 };
inline constexpr EnumName<OtCost> kOtCosts[] = {{OtCost::kL1, "l1"}, {OtCost::kL2, "l2"}};
constexpr std::span<const EnumName<OtCost>> names_of(OtCost) { return kOtCosts; }

/// How coordinate targets are made (BEHAVIOUR 7.1); names are the keys under `custom.extra.rollout_matching`.
struct TargetSettings {
  OtCost ot_cost = OtCost::kL2;
  double ot_epsilon = 10.0;  ///< > 0, bins
  int ot_iters = 30;         ///< ≥ 1

  bool operator==(const TargetSettings&) const = default;
};

}  // namespace rematch
