#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/data.h"
#include "model/vision/image.h"
#include "model/vision/patches.h"

namespace rematch {

/// Loads images ahead of use on worker threads and caches their patches. prefetch() drops an image
/// that neither it nor the previous prefetch() requested, nor a get() since then. Results do not
/// depend on the number of workers.
class PixelStore {
 public:
  struct Options {
    LoaderSettings loader;
    /// images of a batch, the unit of loader.prefetch_factor
    int batch_images = 1;
    size_t cache_bytes = size_t{1} << 30;  ///< least recently used images beyond this are dropped
    PatchOptions patches;
    bool as_levels = false;  ///< patches of grey levels, for a tower on a device
    /// applies ImageRef::change; required if any reference has one
    std::function<void(Image&, const ImageChange&)> change;
  };
  explicit PixelStore(const Options& options);
  ~PixelStore();
  PixelStore(const PixelStore&) = delete;

  /// Starts loading the images of a window (or batch) in the background; get() throws the errors.
  /// Call it once per window with all its images: it also drops images that are no longer used.
  void prefetch(const std::vector<ImageRef>& images);

  /// Patches of one image; waits until it is loaded, or loads it now. After an error a later call
  /// reads the file again.
  /// @throws UserError, also when the file's size disagrees with image.grid_thw
  std::shared_ptr<const Patches> get(const ImageRef& image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
