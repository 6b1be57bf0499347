#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "settings/cadence.h"

namespace rematch {

/// What is due after an optimizer step.
struct Due {
  bool log = false;
  bool evaluate = false;
  bool save = false;  ///< by steps or epoch; saving on a new best is decided after the evaluation
  bool stop = false;
};

/// Optimizer steps of epoch 0, 1, …: ≥ 1, and always the same.
using StepsOfEpoch = std::function<int64_t(int64_t epoch)>;

/// Counts optimizer steps and reports what is due after each. Epochs may differ in length (stage 1
/// with packing).
class Cadence {
 public:
  /// Without max_steps queries the steps of every epoch of the run; with it of none.
  Cadence(const CadenceSettings& options, StepsOfEpoch steps_of_epoch);
  /// All epochs equal. @param steps_per_epoch  optimizer steps of one epoch, ≥ 1
  Cadence(const CadenceSettings& options, int64_t steps_per_epoch);

  /// Optimizer steps of the whole run: max_steps, or those of num_train_epochs; of a last part of
  /// an epoch that part of its steps, rounded up.
  int64_t total_steps() const { return total_steps_; }

  /// @param step          number of finished optimizer steps, ≥ 1
  /// @param ends_epoch    this step was the last of its epoch
  Due after_step(int64_t step, bool ends_epoch) const;

  /// True when a checkpoint may be written after `step` (save_delay_*).
  bool may_save(int64_t step) const;

  /// Epochs done after `step`, as transformers reports `epoch`: whole at the end of an epoch, its
  /// share of that epoch's steps between. Queries no epoch after the one that `step` belongs to.
  /// @param step  ≥ 0
  double epoch_at(int64_t step) const;

 private:
  int64_t steps_in(int64_t epoch) const;

  CadenceSettings options_;
  StepsOfEpoch steps_of_epoch_;
  int64_t total_steps_;
  /// steps at the end of epochs 0, 1, … as far as needed
  mutable std::vector<int64_t> epoch_ends_;
};

}  // namespace rematch
