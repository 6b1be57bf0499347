#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ranks/group.h"
#include "model/nn/block_weights.h"

namespace rematch {

/// Frozen weights of which each rank holds one part of N (`training.zero_stage: 3`). One block is
/// whole at a time: need() gathers its parts from all ranks into memory that all blocks share, and
/// the parts of the block that came after the last two before are on their way. Memory on a rank:
/// its parts and two blocks that follow each other.
///
/// Rows differ, so ranks may need different blocks, or none: before each gather they tell each
/// other what they need, and gather the first of these blocks, all of them. A rank that needs a
/// later one asks again. So it is enough that every rank calls need() in any order and then meet().
class FrozenShards : public BlockWeights {
 public:
  /// @param group   must outlive the object.
  /// @param device  of the weights
  FrozenShards(Group& group, const at::Device& device) : group_(group), device_(device) {}

  size_t hold(const std::vector<at::Tensor>& tensors, const Read& read) override;
  /// @throws what synchronous calls of the group throw, also inside a backward pass
  void need(size_t block) override;
  void meet() override;

 private:
  /// A block, as bytes. Its size is that of all parts.
  struct Shard {
    at::Tensor part;       ///< of this rank
    c10::Storage storage;  ///< of the block's tensors: empty, or a buffer
  };
  /// A gather that all ranks have started.
  struct Gather {
    size_t block = 0;
    at::Tensor bytes;  ///< on the group's message device
    std::vector<std::function<void()>> waits;
  };

  /// Agrees with the other ranks on a block, and makes it whole.
  /// @param wish  nullopt = none
  /// @return  the block; nullopt if no rank needs one
  std::optional<size_t> take_turn(std::optional<size_t> wish);
  std::optional<size_t> agree(std::optional<size_t> wish);
  Gather start(size_t block);
  void finish(Gather gather);

  Group& group_;
  at::Device device_;
  std::vector<Shard> blocks_;
  at::Tensor whole_, spare_;        ///< buffers: of the whole block, and for the next one
  std::optional<size_t> current_;   ///< the block that is whole, the same on every rank
  std::optional<size_t> previous_;  ///< the one before it
  std::optional<Gather> ahead_;     ///< of the block that should come next
  using LastTwo = std::pair<std::optional<size_t>, std::optional<size_t>>;
  std::map<LastTwo, size_t> followers_;  ///< what came after the last two blocks
};

}  // namespace rematch
