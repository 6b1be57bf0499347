#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/enum_names.h"

namespace rematch {

/// Normalization of the loss of a step (`loss_normalization`, BEHAVIOUR 8.4).
enum class LossNormalization {
  /// sums over the window's counts: independent of packing and of the split into micro-batches
  kWindow,
  kRow,  ///< mean per row, averaged over the window's rows
};
constexpr auto names_of(LossNormalization) {
  return std::to_array<EnumName<LossNormalization>>(
      {{LossNormalization::kWindow, "window"}, {LossNormalization::kRow, "row"}});
}

/// The ONE description of a numeric loss setting. The loss term reads it; configuration keys, their
/// documentation and the options of `rematch-stages stage loss` are generated from it. It is
/// defined in the file of its loss and becomes the key `custom.loss.NAME`. The settings of the
/// coordinate losses are defined here, because their keys have other names (CoordLossKey).
struct LossKey {
  struct Bounds {
    double low, high;
  };
  const char* name = "";
  double fallback = 0;        ///< default; infinity = none (null in a configuration)
  double low = 0;             ///< least value for which the loss is defined
  bool excludes_low = false;  ///< `low` itself is not legal
  /// bounds in a configuration, if narrower than those of the loss
  std::optional<Bounds> closer;
  const char* meaning = "";  ///< one line
};

/// Loss settings by LossKey::name; absent ones have their defaults.
using LossSettings = std::map<std::string, double>;

inline constexpr LossKey kSoftCeWeight{
    .name = "soft_ce_weight",
    .fallback = 1,
    .closer = LossKey::Bounds{0, 1e6},
    .meaning = "weight of the soft cross-entropy of a coord slot"};
inline constexpr LossKey kW1Weight{.name = "w1_weight",
                                   .fallback = 1,
                                   .closer = LossKey::Bounds{0, 1e6},
                                   .meaning = "weight of the Wasserstein-1 distance"};
inline constexpr LossKey kGateWeight{
    .name = "gate_weight",
    .fallback = 1,
    .closer = LossKey::Bounds{0, 1e6},
    .meaning = "weight of the gate loss (probability outside the coord tokens)"};
inline constexpr LossKey kCoordTemperature{.name = "temperature_coord",
                                           .fallback = 1,
                                           .excludes_low = true,
                                           .closer = LossKey::Bounds{1e-3, 1e3},
                                           .meaning = "divides the coord logits"};
inline constexpr LossKey kTargetSigma{.name = "target_sigma",
                                      .fallback = 2,
                                      .excludes_low = true,
                                      .closer = LossKey::Bounds{1e-2, 1e4},
                                      .meaning = "width of the soft target in bins"};
inline constexpr LossKey kTargetTruncate{
    .name = "target_truncate",
    .fallback = std::numeric_limits<double>::infinity(),
    .meaning = "distance in bins beyond which the soft target is 0; null: no limit"};

/// A setting of the losses on coord slots (BEHAVIOUR 8.2) has two keys: one in
/// `custom.coord_soft_ce_w1`, and one with its name in `custom.extra.rollout_matching`, which
/// overrides the first in stage 2.
struct CoordLossKey {
  LossKey key;
  const char* shared_name;  ///< in `custom.coord_soft_ce_w1`
  bool is_weight = false;   ///< is 0 if `custom.coord_soft_ce_w1.enabled` is false
};
inline constexpr CoordLossKey kCoordLossKeys[] = {
    {kSoftCeWeight, "soft_ce_weight", true}, {kW1Weight, "w1_weight", true},
    {kGateWeight, "gate_weight", true},      {kCoordTemperature, "temperature"},
    {kTargetSigma, "target_sigma"},          {kTargetTruncate, "target_truncate"}};

}  // namespace rematch
