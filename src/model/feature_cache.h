#pragma once
#include <cstdint>
#include <map>

#include "base/content_key.h"
#include "model/model.h"

namespace rematch {

/// Caches the output of a frozen vision tower and aligner for the images of a row, for the next
/// optimizer step on the same window. Cached values equal computed ones bit for bit: the images of
/// a row are cached together, because the rounding of a product may depend on its number of rows.
class FeatureCache {
 public:
  struct Options {
    /// of cached features; rows beyond it are computed every time
    int64_t max_bytes = int64_t{1} << 30;
  };
  FeatureCache() = default;
  explicit FeatureCache(const Options& options) : options_(options) {}

  /// Features of a row's images, by the content of their pixels. Cached only in training (gradients
  /// on) and if no gradient flows through them; all are dropped if a weight of the tower has
  /// changed. Returns copies, so that a forward pass may write into what it gets. Cost of a hit:
  /// one pass over the pixels and one copy of the features.
  VisionFeatures features(const Model& model, const VisionInput& images);
  /// Call it at the end of a window, because its rows do not recur.
  void clear();

  int64_t bytes() const { return bytes_; }  ///< of cached features

 private:
  Options options_;
  std::map<ContentKey, VisionFeatures> rows_;
  int64_t bytes_ = 0, weights_version_ = -1;
};

}  // namespace rematch
