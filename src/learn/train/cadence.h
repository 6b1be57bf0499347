#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/settings/cadence.h"

namespace rematch {

/// Actions due after an optimizer step.
struct Due {
  bool log = false;
  bool evaluate = false;
  bool save = false;  ///< by steps or epoch; saving on a new best is decided after the evaluation
  bool stop = false;
};

/// Number of optimizer steps in epoch 0, 1, …; ≥ 1. Every call gives the same number.
using EpochSteps = std::function<int64_t(int64_t epoch)>;

/// Counts optimizer steps and reports what is due after each. Epochs may differ in length (stage 1
/// with packing).
class Cadence {
 public:
  /// Calls `epoch_steps` for every epoch of the run, or for none when max_steps is set.
  Cadence(const CadenceSettings& options, EpochSteps epoch_steps);

  /// Optimizer steps of the whole run: max_steps, or the steps of num_train_epochs. A fractional
  /// last epoch counts that fraction of its steps, rounded up.
  int64_t total_steps() const { return total_steps_; }

  /// @param step          number of finished optimizer steps, ≥ 1
  /// @param ends_epoch    this step was the last of its epoch
  Due after_step(int64_t step, bool ends_epoch) const;

  /// True when a checkpoint may be written after `step` (save_delay_*).
  bool may_save(int64_t step) const;
  /// True when a new best after `step` is saved.
  /// @param ends_by_scores  evaluations may end the run, which then must have its best
  bool saves_best(int64_t step, bool ends_by_scores) const {
    return (ends_by_scores || options_.save_when == When::kBest) && may_save(step);
  }

  /// Epochs done after `step`, as transformers reports `epoch`: a whole number at the end of an
  /// epoch, a fraction within it. Looks at no epoch later than the one that contains `step`.
  /// @param step  ≥ 0
  double epoch_at(int64_t step) const;

 private:
  int64_t steps_in(int64_t epoch) const;

  CadenceSettings options_;
  EpochSteps epoch_steps_;
  int64_t total_steps_;
  /// steps done at the end of epochs 0, 1, …; filled as needed
  mutable std::vector<int64_t> epoch_ends_;
};

}  // namespace rematch
