#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "flow/sample.h"
#include "settings/data.h"
#include "vision/image.h"
#include "vision/patches.h"

namespace rematch {

/// Loads images ahead on worker threads and keeps those in use: an image is dropped when two
/// consecutive prefetch() calls, and every get() since the first of them, request others. Results
/// never depend on the number of workers.
class PixelStore {
 public:
  struct Options {
    LoaderSettings loader;
    /// images of a batch, the unit of loader.prefetch_factor
    int batch_images = 1;
    size_t cache_bytes = size_t{1} << 30;  ///< least recently used images beyond this are dropped
    PatchOptions patches;
    /// applies ImageRef::change; needed where references have one
    std::function<void(Image&, const ImageChange&)> change;
  };
  explicit PixelStore(const Options& options);
  ~PixelStore();
  PixelStore(const PixelStore&) = delete;

  /// Starts loading the images of a window (or batch) in the background; errors surface in get().
  /// Call it once per window, with all its images: it also decides which images are dropped.
  void prefetch(const std::vector<ImageRef>& images);

  /// Pixels of one image; waits for the load or does it. @throws UserError, also when the file's
  /// size disagrees with image.grid_thw
  std::shared_ptr<const Patches> get(const ImageRef& image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
