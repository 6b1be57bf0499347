#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "learn/mstep/optim/adamw.h"

namespace rematch {

/// Sums the gradients of bfloat16 parameters in float32 over the backward passes of a step, so
/// small contributions are not rounded away. While the object exists, a hook takes each bfloat16
/// gradient as soon as it is complete, so at most one of them exists at a time. Autograd sums those
/// of float32 parameters.
class Float32Gradients {
 public:
  explicit Float32Gradients(const std::vector<ParameterGroup>& groups);
  ~Float32Gradients();
  Float32Gradients(const Float32Gradients&) = delete;
  Float32Gradients& operator=(const Float32Gradients&) = delete;

  /// Moves the sums to .grad (float32), where clip_grad_norm() and AdamW expect them.
  void publish();
  /// Drops the sums since the last publish().
  void discard();

 private:
  struct Sum {
    at::Tensor parameter;
    std::shared_ptr<at::Tensor> value;  ///< shared with the hook
  };
  std::vector<Sum> sums_;
};

}  // namespace rematch
