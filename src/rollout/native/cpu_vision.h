#pragma once
#include <memory>
#include <span>
#include <vector>

#include "flow/grid.h"
#include "model/model.h"

namespace rematch {

/// The vision tower on the kernels of src/kernels, in float32 whatever the weights' dtype. Equal to
/// Model::encode_images up to rounding. The result of an image depends on its pixels alone: not on
/// other images or the number of threads, which is at::get_num_threads().
class CpuVision {
 public:
  /// @param model  on the CPU
  explicit CpuVision(std::shared_ptr<const Model> model);
  ~CpuVision();

  /// Reads the current training weights: call it before the first image, and after they have
  /// changed. Merges an adapter.
  void refresh();
  struct Image {
    const float* pixels = nullptr;  ///< [t·h·w, patch width] as the processor returns them
    GridThw grid_thw{};             ///< patches
  };
  /// Features of each image, float32. One per thread is processed in parallel; threads share an
  /// image when there are fewer.
  std::vector<VisionFeatures> encode(std::span<const Image> images);
  /// Releases memory; call refresh() before the next image.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
