#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace rematch {

/// Uninitialised memory for numbers; large buffers are aligned to large pages.
template <class T>
class CpuBuffer {
 public:
  CpuBuffer() = default;
  explicit CpuBuffer(int64_t size) { reserve(size); }

  /// Makes room for at least `size` values. Contents are lost when the buffer grows.
  void reserve(int64_t size) {
    if (size <= size_) return;
    constexpr size_t kLargePage = size_t{2} << 20;
    const size_t wanted = static_cast<size_t>(size) * sizeof(T);
    const size_t alignment = wanted >= kLargePage ? kLargePage : 64;
    const size_t bytes = (wanted + alignment - 1) / alignment * alignment;
    data_.reset();
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    // a hint; small pages work too
    if (alignment == kLargePage) static_cast<void>(madvise(data_.get(), bytes, MADV_HUGEPAGE));
    size_ = size;
  }
  /// Releases the memory.
  void release() {
    data_.reset();
    size_ = 0;
  }

  T* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

}  // namespace rematch
