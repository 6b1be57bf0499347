#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace rematch {

/// Frozen weights of a model's blocks that are not all in memory at once, because several processes
/// share them (engine/ranks/frozen_shards.h). All processes hold the same blocks in the same order.
class BlockWeights {
 public:
  virtual ~BlockWeights() = default;
  /// Reads the values [begin, begin + count) of tensor `i` of a block, flattened, in its dtype and
  /// on its device.
  using Read = std::function<at::Tensor(size_t i, int64_t begin, int64_t count)>;
  /// Takes the values of the next block: of each tensor it reads those that this process holds. The
  /// tensors stay the same objects with the same shapes, but have values only after need().
  /// @param tensors  contiguous, without gradients, none of them twice; their values are not used
  /// @return  number of the block, from 0
  virtual size_t hold(const std::vector<at::Tensor>& tensors, const Read& read) = 0;
  /// Gives a block's tensors their values, until need() of another block. Every process must be in
  /// need() or meet().
  virtual void need(size_t block) = 0;
  /// Returns when every process has called it; until then helps the others in need().
  virtual void meet() = 0;
};

/// Runs a block of a network.
/// @param need  gives its weights their values: called before the block and before its backward
/// pass; empty = they always have them
at::Tensor run_block(const std::function<void()>& need, const std::function<at::Tensor()>& run);

}  // namespace rematch
