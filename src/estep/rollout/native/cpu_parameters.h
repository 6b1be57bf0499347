#pragma once
#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "model/qwen3vl.h"

namespace rematch {

/// Finds a model's parameters by checkpoint name as the kernels read them, through the adapter if there is one: what it changes is a new,
/// merged tensor; all other matrices are the training tensors where they lie.
class CpuParameters {
 public:
  /// @param model  on the CPU
  explicit CpuParameters(const Qwen3VL& model);

  /// A parameter with all dimensions but the first taken together. Large training tensors are put on large pages. Lives as long as kept().
  kernels::Weights matrix(const std::string& name);
  /// matrix(MODULE.weight) with MODULE.bias.
  kernels::Weights linear(const std::string& module);
  /// A copy as float32; for a few kilobytes.
  std::vector<float> vector(const std::string& name) const;
  /// The tensor itself.
  at::Tensor tensor(const std::string& name) const;

  /// Owners of what the matrices point to.
  std::vector<at::Tensor> kept() && { return std::move(kept_); }

 private:
  const Qwen3VL& model_;
  std::map<std::string, const NamedParameter*> parameters_;
  std::vector<at::Tensor> kept_;
};

}  // namespace rematch
