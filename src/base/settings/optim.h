#pragma once
#include <optional>

namespace rematch {

/// `training.adam_*`.
struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;

  bool operator==(const AdamWSettings&) const = default;
};

/// Learning rates of the parameter groups, decay and clipping (BEHAVIOUR 12).
struct OptimSettings {
  double learning_rate = 1e-5;       ///< base rate, which the schedule multiplies
  std::optional<double> vit_lr;      ///< none = learning_rate
  std::optional<double> aligner_lr;  ///< none = learning_rate
  double weight_decay = 0.1;         ///< not applied to norm weights and biases
  AdamWSettings adam;
  double max_grad_norm = 1.0;  ///< ≤ 0: the norm is measured, but not clipped
  /// several ranks: 0 = each rank has the whole optimizer state, 1 and 2 = sharded; no effect on
  /// results
  int zero_stage = 0;
  /// several ranks: sum gradients row by row in window order, for the same bits on any number
  bool exact_ranks = false;

  bool operator==(const OptimSettings&) const = default;
};

}  // namespace rematch
