#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/flow/grid.h"
#include "model/model.h"

namespace rematch {

/// The vision tower on the kernels of src/model/kernels, always in float32. Equal to
/// Model::encode_images up to rounding. The features of an image depend only on its pixels, not on
/// other images or the number of threads (at::get_num_threads()).
class CpuVision {
 public:
  /// @param model  on the CPU
  explicit CpuVision(std::shared_ptr<const Model> model);
  ~CpuVision();

  /// Reads the training weights and merges an adapter: call it before the first image and whenever
  /// they have changed.
  void refresh();
  struct Image {
    const float* pixels = nullptr;  ///< [t·h·w, patch width] in the processor's order
    GridThw grid_thw{};             ///< patches
  };
  /// Float32 features of each image. Each thread processes one image; with fewer images than
  /// threads, all threads share each image.
  std::vector<VisionFeatures> encode(std::span<const Image> images);
  /// Releases memory; call refresh() before the next image.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
