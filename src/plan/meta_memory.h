#pragma once
#include <cstdint>

namespace rematch {

/// Bytes of tensors on the meta device: what a forward and backward pass would hold, without
/// computing it. Tensors have shapes and storages without memory; an allocator counts them. Also
/// provides the kernels that libtorch lacks there (Python registers its own). Scratch memory inside
/// kernels is not counted. One thread at a time.
class MetaMemory {
 public:
  /// Counts from here on.
  MetaMemory();
  /// Bytes of the storages made since then that are still alive.
  int64_t live() const;
  /// Most bytes that were alive at once since the last restart_peak().
  int64_t peak() const;
  void restart_peak();

 private:
  int64_t begin_ = 0;
};

}  // namespace rematch
