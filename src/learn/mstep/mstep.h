#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/flow/segment.h"
#include "base/keeps_state.h"
#include "base/metrics.h"
#include "base/settings/loss.h"
#include "learn/mstep/gradient_sum.h"
#include "learn/mstep/loss/losses.h"
#include "learn/mstep/optim/adamw.h"
#include "learn/mstep/optim/schedule.h"
#include "model/row_scope.h"

namespace rematch {

class LossWatch;

/// The parts of a model that training uses.
struct RowModel {
  /// a row's final hidden states, with graph when gradients are on
  std::function<at::Tensor(const PackedRow&)> hidden_TH;
  Head head;
  /// Called before a row is trained on (step: finished optimizer steps; row_idx: index in the
  /// window of all ranks); the result is held until the row's backward pass is done. May be empty.
  std::function<RowScope(int64_t step, int64_t row_idx)> training_row = {};
};

/// Scales of this process's rows of a window. They follow from the targets alone, so they are known
/// before the first forward pass. 0 if there is nothing to divide by.
/// @param sum_counts  adds the counts of the window's rows in other processes
std::vector<LossScale> loss_scales(
    const std::vector<RowSupervision>& rows, LossNormalization normalization,
    const std::function<void(std::span<double>)>& sum_counts = [](std::span<double>) {});

/// The loss of a step is NaN or infinite. Thrown before anything is updated: weights, optimizer and
/// schedule are as at the start of the step.
struct NonFiniteLoss : KeepingError {
  using KeepingError::KeepingError;
};

/// Trains on windows: one optimizer update each.
class MStep {
 public:
  struct Options {
    LossOptions loss;
    LossNormalization normalization = LossNormalization::kWindow;
    double max_grad_norm = 1.0;  ///< ≤ 0: gradients are measured, not clipped
    double learning_rate = 0;    ///< logged, multiplied by the schedule's factor
  };
  /// @param gradients  of the trainable parameters (make_gradient_sum)
  MStep(RowModel model, std::unique_ptr<GradientSum> gradients, const AdamWSettings& adamw,
        const Schedule& schedule, Options options);

  /// One optimizer step: forward and backward of each row, clipping, AdamW, schedule. Adds `loss`,
  /// `grad_norm`, `learning_rate`, `loss/KIND` (for slots also `loss/KIND_prefix` and
  /// `loss/KIND_tail`) and `time/{forward_s,backward_s,optimizer_s}` to `metrics`; the losses in
  /// one process only. All processes that share the window call it, in one phase, even without
  /// rows.
  /// @throws NonFiniteLoss, and exceptions of hidden_TH; nothing has changed then.
  void run(const Window& window, MetricsBag& metrics);

  /// Over GradientSum::updated_groups().
  AdamW& optimizer() { return optimizer_; }
  const AdamW& optimizer() const { return optimizer_; }
  /// The optimizer state that this process saves: AdamW::state() of GradientSum::owned_groups().
  NamedTensors state_to_save() const;
  /// Finished optimizer steps: the position in the schedule.
  int64_t num_steps() const { return optimizer_.num_steps(); }

 private:
  RowLoss train_row(const PackedRow& row, const RowSupervision& supervision, const LossScale& scale,
                    LossWatch& watch, MetricsBag& metrics);
  void settle_losses(const Window& window, std::vector<RowLoss>& losses);
  double finish_gradients(const Window& window);

  Options options_;
  std::unique_ptr<GradientSum> gradients_;
  RowModel model_;
  AdamW optimizer_;
  Schedule schedule_;
};

/// Loss of a row without gradients, scales 1: teacher-forced evaluation (BEHAVIOUR 14).
RowLoss teacher_forced_loss(const RowModel& model, const PackedRow& row,
                            const LossOptions& options);

}  // namespace rematch
