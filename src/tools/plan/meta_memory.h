#pragma once
#include <cstdint>

namespace rematch {

/// Counts the bytes of tensors on the meta device: the memory of a forward and backward pass
/// without computing it. Tensors have shapes and storages without memory; an allocator counts them.
/// Also provides the meta kernels that libtorch lacks (they exist only in Python). Does not count
/// scratch memory inside kernels. One thread at a time.
class MetaMemory {
 public:
  /// Starts to count.
  MetaMemory();
  /// Bytes of the live storages that were made since construction.
  int64_t live() const;
  /// Most live bytes since the last restart_peak().
  int64_t peak() const;
  void restart_peak();

 private:
  int64_t begin_ = 0;
};

}  // namespace rematch
