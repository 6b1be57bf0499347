#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace rematch {

enum class When { kNever, kSteps, kEpoch, kBest };

/// When to log, evaluate and save; counts optimizer steps (BEHAVIOUR 10.3).
struct CadenceOptions {
  int64_t max_steps = 0;  ///< > 0 beats num_train_epochs
  double num_train_epochs = 3;
  int64_t logging_steps = 10;
  bool logging_first_step = false;
  When eval_when = When::kNever;  ///< kSteps or kEpoch
  int64_t eval_steps = 0;
  When save_when = When::kSteps;  ///< kSteps, kEpoch, kBest (with every new best evaluation) or kNever
  int64_t save_steps = 500;
  int64_t save_delay_steps = 0;  ///< no checkpoint before this many steps
  double save_delay_epochs = 0;
  bool save_last_epoch = true;  ///< a checkpoint at the very end, also with kNever
};

/// What is due after an optimizer step.
struct Due {
  bool log = false;
  bool evaluate = false;
  bool save = false;  ///< by steps or epoch; saving on a new best is decided after the evaluation
  bool stop = false;
};

/// Optimizer steps of epoch 0, 1, …: ≥ 1, and the same whenever it is asked.
using StepsOfEpoch = std::function<int64_t(int64_t epoch)>;

/// Counts optimizer steps and says what is due after each. Epochs may differ in length (stage 1 with packing).
class Cadence {
 public:
  /// Without max_steps asks for the steps of every epoch of the run; with it for none.
  Cadence(const CadenceOptions& options, StepsOfEpoch steps_of_epoch);
  /// All epochs alike. @param steps_per_epoch  optimizer steps of one epoch, ≥ 1
  Cadence(const CadenceOptions& options, int64_t steps_per_epoch);

  /// Optimizer steps of the whole run: max_steps, or those of num_train_epochs; of a last part of an epoch that part of its steps,
  /// rounded up.
  int64_t total_steps() const { return total_steps_; }

  /// @param step          number of finished optimizer steps, ≥ 1
  /// @param ends_epoch    this step was the last of its epoch
  Due after_step(int64_t step, bool ends_epoch) const;

  /// True when a checkpoint may be written after `step` (save_delay_*).
  bool may_save(int64_t step) const;

  /// Epochs done after `step`, as transformers reports `epoch`: whole at the end of an epoch, its share of that epoch's steps between.
  /// Asks for the steps of no epoch behind the one that `step` belongs to. @param step  ≥ 0
  double epoch_at(int64_t step) const;

 private:
  int64_t steps_in(int64_t epoch) const;

  CadenceOptions options_;
  StepsOfEpoch steps_of_epoch_;
  int64_t total_steps_;
  mutable std::vector<int64_t> epoch_ends_;  ///< steps at the end of epochs 0, 1, … as far as they were needed
};

}  // namespace rematch
