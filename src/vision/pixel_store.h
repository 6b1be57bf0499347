#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "flow/sample.h"
#include "vision/patches.h"

namespace rematch {

/// Loads images ahead with worker threads and keeps those at work: an image goes when two prefetch() calls in a row, and every get() since the
/// first of them, asked for others. Results never depend on the number of workers.
class PixelStore {
 public:
  struct Options {
    int num_workers = 2;                   ///< 0 = decode in the calling thread
    size_t cache_bytes = size_t{1} << 30;  ///< least recently used images beyond this are dropped
    PatchOptions patches;
  };
  explicit PixelStore(Options options);
  ~PixelStore();
  PixelStore(const PixelStore&) = delete;

  /// Starts loading the images of a window (or batch) in the background; errors surface in get(). Called once a window, with all its images:
  /// the call is also what the store forgets by.
  void prefetch(const std::vector<ImageRef>& images);

  /// Pixels of one image, waiting for or doing the load. @throws UserError, also when the file's size disagrees with image.grid_thw
  std::shared_ptr<const Patches> get(const ImageRef& image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
