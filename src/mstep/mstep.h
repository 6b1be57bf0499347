#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/keeps_state.h"
#include "base/metrics.h"
#include "ranks/group.h"
#include "flow/segment.h"
#include "mstep/gradient_turns.h"
#include "mstep/loss/losses.h"
#include "mstep/optim/adamw.h"
#include "mstep/optim/float32_gradients.h"
#include "mstep/optim/schedule.h"
#include "settings/loss.h"

namespace rematch {

/// What training needs from a model.
struct RowModel {
  /// a row's final hidden states, with graph when gradients are on
  std::function<at::Tensor(const PackedRow&)> hidden_TH;
  Head head;
  /// Called before a row is trained on (step: finished optimizer steps; row_idx: in the window of
  /// all ranks); its result is held until the row's backward pass is done. May be empty.
  std::function<std::shared_ptr<void>(int64_t step, int64_t row_idx)> training_row = {};
};

/// Scales of this rank's rows of a window. They follow from the targets of all ranks alone, so they
/// are known before the first forward pass. 0 if there is nothing to divide by.
std::vector<LossScale> loss_scales(const std::vector<RowSupervision>& rows,
                                   LossNormalization normalization, Group& group = alone());

/// The loss of a step is NaN or infinite. Thrown before anything is updated: weights, optimizer and
/// schedule are as at the step's start.
class NonFiniteLoss : public UserError, public KeepsState {
 public:
  NonFiniteLoss(Problem problem, std::vector<int64_t> sample_ids)
      : UserError(ErrorKind::kData, std::move(problem)), sample_ids_(std::move(sample_ids)) {}
  /// Samples of the row (or, for a non-finite gradient, of the window) that caused it.
  const std::vector<int64_t>& sample_ids() const { return sample_ids_; }

 private:
  std::vector<int64_t> sample_ids_;
};

/// Consumes a window's rows, produces one optimizer update.
class MStep {
 public:
  struct Options {
    LossOptions loss;
    LossNormalization normalization = LossNormalization::kWindow;
    double max_grad_norm = 1.0;  ///< ≤ 0: gradients are measured, not clipped
    double learning_rate = 0;    ///< logged, multiplied by the schedule's factor
    /// ranks that share a window: their rows are counted and their gradients added together
    Group* group = &alone();
    /// Over several ranks: 0 = each keeps the whole optimizer state; from 1 on only that of the
    /// parameters it owns. Gradients are never whole for longer than one row, so 2 is the same
    /// as 1. The bits do not depend on it.
    int zero_stage = 0;
    /// gradients that leave a rank in one message; the bits do not depend on it
    int64_t bucket_bytes = int64_t{25} << 20;
  };
  /// @param groups  trainable parameters (make_groups)
  MStep(RowModel model, std::vector<ParameterGroup> groups, const AdamWSettings& adamw,
        const Schedule& schedule, Options options);

  /// One optimizer step: forward and backward of each row, clipping, AdamW, schedule. `window` may
  /// be used again (rollout buffer). Adds `loss`, `grad_norm`, `learning_rate`, `loss/KIND` (of
  /// slots also `loss/KIND_prefix` and `loss/KIND_tail`) and
  /// `time/{forward_s,backward_s,optimizer_s}` to `metrics`; those of the loss on rank 0 only.
  /// Every rank calls it, also with a window without rows. @throws NonFiniteLoss; whatever
  /// hidden_TH throws; on the other ranks as Agreement::conclude(). After an exception nothing has
  /// changed.
  void run(const Window& window, MetricsBag& metrics);

  /// Of all parameters, or with zero_stage ≥ 1 over several ranks of those that this rank owns.
  AdamW& optimizer() { return optimizer_; }
  const AdamW& optimizer() const { return optimizer_; }
  /// What this rank contributes to a checkpoint: AdamW::state() of the parameters it owns, each on
  /// one rank only.
  std::vector<std::pair<std::string, at::Tensor>> state_to_save() const;
  /// Finished optimizer steps: the position in the schedule.
  int64_t num_steps() const { return optimizer_.num_steps(); }

 private:
  RowLoss accumulate(const PackedRow& row, const RowSupervision& supervision,
                     const LossScale& scale, MetricsBag& metrics);
  int64_t num_turns(const Window& window) const;
  void settle_losses(const Window& window, std::vector<RowLoss>& losses);
  double update(const Window& window, double factor);
  void drop_gradients();
  bool is_sharded() const { return turns_ != nullptr && options_.zero_stage >= 1; }

  Options options_;
  std::vector<ParameterGroup> groups_;    ///< all of them
  std::unique_ptr<GradientTurns> turns_;  ///< null when alone: autograd adds the rows up
  RowModel model_;
  AdamW optimizer_;
  /// of no parameter when there are turns_, which add up in float32 themselves
  Float32Gradients float32_gradients_;
  Schedule schedule_;
};

/// Loss of a row without gradients, scales 1: teacher-forced evaluation (BEHAVIOUR 14).
RowLoss teacher_forced_loss(const RowModel& model, const PackedRow& row,
                            const LossOptions& options);

}  // namespace rematch
