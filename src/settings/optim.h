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
  double learning_rate = 1e-5;       ///< base value; the schedule multiplies it
  std::optional<double> vit_lr;      ///< none = learning_rate
  std::optional<double> aligner_lr;  ///< none = learning_rate
  double weight_decay = 0.1;         ///< not for norms and biases
  AdamWSettings adam;
  double max_grad_norm = 1.0;  ///< ≤ 0: gradients are measured, not clipped
  /// over several ranks: 0 = optimizer state whole on each, 1 and 2 = sharded; no number depends on
  /// it
  int zero_stage = 0;
  /// over several ranks: sum gradients row by row in window order, the same bits on any number
  bool exact_ranks = false;

  bool operator==(const OptimSettings&) const = default;
};

}  // namespace rematch
