#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/settings/optim.h"
#include "model/checkpoint/state_files.h"
namespace rematch {

/// Parameters that share a learning rate and a weight decay.
struct ParameterGroup {
  std::string name;          ///< "vit", "aligner" or "llm", with ".no_decay" for norms and biases
  double learning_rate = 0;  ///< base value; the schedule multiplies it
  double weight_decay = 0;
  Strings names;                       ///< checkpoint names
  std::vector<at::Tensor> parameters;  ///< leaves with requires_grad
};

/// AdamW as torch.optim.AdamW(fused=True) computes it; bfloat16 parameters have float32 masters.
class AdamW {
 public:
  AdamW(std::vector<ParameterGroup> groups, const AdamWSettings& options);

  /// One update from the parameters' .grad (in place); as in torch, a parameter without one does
  /// not change.
  /// @param lr_factor multiplies every group's learning rate
  void step(double lr_factor);
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  int64_t num_steps() const { return num_steps_; }

  /// State by name for checkpoints: float32 "NAME.master" (bfloat16 only), "NAME.exp_avg",
  /// "NAME.exp_avg_sq"; int64 "NAME.num_steps" only if it differs from num_steps(). These are the
  /// live tensors: write them before the next step.
  NamedTensors state() const;
  /// The live tensors of the optimizer: masters of bfloat16 parameters and both averages. None
  /// shares memory with a parameter.
  std::vector<at::Tensor> tensors() const;
  /// Restores what state() returned.
  /// @throws UserError (data) for a missing or misshapen entry
  void load_state(const NamedTensors& state, int64_t num_steps);

 private:
  struct Slot {
    /// float32; undefined for a float32 parameter, which is its own master
    at::Tensor master;
    at::Tensor exp_avg, exp_avg_sq;  ///< float32
    int64_t num_steps = 0;           ///< updates so far, the t of the bias corrections
  };
  /// Tensors that one operator updates together.
  struct Batch;
  void update(Batch& batch, double learning_rate, double weight_decay) const;

  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<Slot>> slots_;
  AdamWSettings options_;
  int64_t num_steps_ = 0;
};

/// Scales all gradients so that their global L2 norm is at most max_norm (≤ 0: only measures).
/// Returns the norm before scaling. Computed like torch.nn.utils.clip_grad_norm_, in float32 and in
/// a fixed order.
double clip_grad_norm(const std::vector<ParameterGroup>& groups, double max_norm);
/// L2 norm of one gradient: a float32 scalar.
at::Tensor gradient_norm(const at::Tensor& grad);
/// The same of several; on a device by one operator.
std::vector<at::Tensor> gradient_norms(const std::vector<at::Tensor>& grads);
/// Scales `grads` by the norms of all gradients of a step (1-D, in the order of the groups).
/// Returns the global norm.
double clip_to_norm(const at::Tensor& norms, const std::vector<at::Tensor>& grads, double max_norm);

}  // namespace rematch
