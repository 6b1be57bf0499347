#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "mstep/optim/adamw.h"

namespace rematch {

/// Sums the gradients of bfloat16 parameters in float32, however many backward passes a step has: a
/// small micro-batch's share is not rounded away. While it lives, a hook takes each bfloat16
/// gradient as soon as it is complete, so at most one of them exists at a time. float32 parameters
/// are left to autograd.
class Float32Gradients {
 public:
  explicit Float32Gradients(const std::vector<ParameterGroup>& groups);
  ~Float32Gradients();
  Float32Gradients(const Float32Gradients&) = delete;
  Float32Gradients& operator=(const Float32Gradients&) = delete;

  /// Stores the sums where clip_grad_norm() and AdamW expect them (.grad, float32), and starts new
  /// ones.
  void publish();
  /// Discards the sums since the last publish().
  void discard();

 private:
  struct Sum {
    at::Tensor parameter;
    std::shared_ptr<at::Tensor> value;  ///< shared with the hook
  };
  std::vector<Sum> sums_;
};

}  // namespace rematch
