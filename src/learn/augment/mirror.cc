#include "learn/augment/mirror.h"

#include <utility>

namespace rematch {

void mirror_objects(size_t axis, std::vector<SceneObject>& objects) {
  for (SceneObject& object : objects) {
    std::vector<int>& bins = object.geometry.bins;
    for (size_t i = axis; i < bins.size(); i += 2) bins[i] = kNumBins - 1 - bins[i];
    if (object.geometry.kind == GeometryKind::kBbox2d) {
      std::swap(bins[axis], bins[axis + 2]);
      continue;
    }
    for (size_t i = 2, j = bins.size() - 2; i < j; i += 2, j -= 2) {
      std::swap(bins[i], bins[j]);
      std::swap(bins[i + 1], bins[j + 1]);
    }
  }
}

}  // namespace rematch
