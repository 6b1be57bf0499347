#pragma once
#include <ATen/ATen.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rollout/native/cpu_buffer.h"
#include "kernels/gemm.h"
#include "model/model.h"

namespace rematch {

/// What kernels read: packed matrices in one piece of memory, and tensors that are read unpacked.
struct CpuMemory {
  CpuBuffer<uint8_t> packed;
  std::vector<at::Tensor> tensors;
};

/// Finds a model's parameters by checkpoint name for the kernels, merged with the adapter if there
/// is one. Products read packed copies (kernels/gemm.h), which take the memory of the matrices
/// again during a rollout.
class CpuParameters {
 public:
  enum class Tower { kVision, kText };  ///< the vision tower has the mergers
  /// @param model  on the CPU, float32 or bfloat16
  /// @param tower  whose matrices will be packed
  CpuParameters(const Model& model, Tower tower);

  /// Linears with the same input, stacked, to be packed for products; all dimensions of a weight
  /// but the first are flattened. Cost: one pass over them, deferred to memory() at the latest.
  kernels::PackedWeights linear(std::initializer_list<const LinearDescription*> parts);
  kernels::PackedWeights linear(const LinearDescription& one) { return linear({&one}); }
  /// The head: the embedding when tied.
  kernels::PackedWeights head();
  /// A parameter row by row, for look-ups.
  kernels::Matrix matrix(const std::string& name);
  /// A copy as float32; for a few kilobytes.
  std::vector<float> vector(const std::string& name) const;
  /// The tensor itself.
  at::Tensor tensor(const std::string& name) const;

  /// Owner of everything the results point to, now complete.
  CpuMemory memory() &&;

 private:
  struct Packing {
    std::vector<at::Tensor> tensors;  ///< merged ones live no longer than this
    std::vector<kernels::Matrix> parts;
    int64_t num_panels = 0;
    void* packed = nullptr;
  };
  kernels::PackedWeights packed(const std::vector<std::string>& names);
  void pack_waiting();

  const Model& model_;
  std::map<std::string, const NamedParameter*> parameters_;
  CpuMemory memory_;
  int64_t num_packed_bytes_ = 0;
  /// so that threads are called together once for many small matrices
  std::vector<Packing> waiting_;
  int64_t num_waiting_bytes_ = 0;
};

}  // namespace rematch
