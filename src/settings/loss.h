#pragma once
#include <optional>

#include "base/enum_names.h"

namespace rematch {

/// How sums become the loss of a step (`loss_normalization`, BEHAVIOUR 8.4).
enum class LossNormalization {
  kWindow,  ///< divided by the window's counts: independent of packing and of the split into micro-batches
  kRow,     ///< mean per row, averaged over the window's rows
};
inline constexpr EnumName<LossNormalization> kLossNormalizations[] = {{LossNormalization::kWindow, "window"},
                                                                      {LossNormalization::kRow, "row"}};
constexpr std::span<const EnumName<LossNormalization>> names_of(LossNormalization) { return kLossNormalizations; }

/// Weights and shapes of the coordinate losses (BEHAVIOUR 8.2): `custom.coord_soft_ce_w1` in stage 1, stage 2's own keys in stage 2.
struct CoordLossSettings {
  double soft_ce_weight = 1.0;
  double w1_weight = 1.0;
  double gate_weight = 1.0;
  double temperature_coord = 1.0;         ///< > 0
  double target_sigma = 2.0;              ///< > 0, bins
  std::optional<double> target_truncate;  ///< bins; none = no truncation

  bool operator==(const CoordLossSettings&) const = default;
};

}  // namespace rematch
