#pragma once
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/rollout/native/cpu/buffer.h"
#include "model/kernels/gemm.h"
#include "model/model.h"

namespace rematch {

/// Memory that kernels read: packed matrices in one buffer, and unpacked tensors.
struct CpuMemory {
  CpuBuffer<uint8_t> packed;
  std::vector<at::Tensor> tensors;
};

/// Provides a model's parameters by checkpoint name for the kernels, merged with the adapter if
/// there is one. Products read packed copies (model/kernels/gemm.h), which double the memory of the
/// matrices during a rollout.
class CpuParameters {
 public:
  enum class Tower { kVision, kText };  ///< the vision tower includes the mergers
  /// @param model  on the CPU, float32 or bfloat16
  /// @param tower  the tower of the matrices to pack
  CpuParameters(const Model& model, Tower tower);

  /// Packs linears with the same input, stacked. All dimensions of a weight but the first are
  /// flattened. Cost: one pass over the weights, deferred until memory() at the latest.
  kernels::PackedWeights linear(std::initializer_list<const LinearDescription*> parts);
  kernels::PackedWeights linear(const LinearDescription& one) { return linear({&one}); }
  /// Packs contiguous float32 or bfloat16 matrices with the same input, stacked.
  /// @param name  for errors
  kernels::PackedWeights stacked(std::vector<at::Tensor> parts, const std::string& name);
  /// The head; the embedding if tied.
  kernels::PackedWeights head();
  /// An unpacked matrix for look-ups.
  kernels::Matrix matrix(const std::string& name);
  /// A float32 copy of a small parameter.
  std::vector<float> vector(const std::string& name) const;
  /// The merged tensor.
  at::Tensor tensor(const std::string& name) const;

  /// Packs all that is deferred. Returns the memory that the results point to.
  CpuMemory memory() &&;

 private:
  struct Packing {
    std::vector<at::Tensor> tensors;  ///< keeps merged tensors alive
    std::vector<kernels::Matrix> parts;
    int64_t num_panels = 0;
    void* packed = nullptr;
  };
  void pack_waiting();

  const Model& model_;
  std::map<std::string, const NamedParameter*> parameters_;
  CpuMemory memory_;
  int64_t num_packed_bytes_ = 0;
  /// batched, so that one parallel loop packs many small matrices
  std::vector<Packing> waiting_;
  int64_t num_waiting_bytes_ = 0;
};

}  // namespace rematch
