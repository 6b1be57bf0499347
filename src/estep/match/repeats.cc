#include "estep/match/repeats.h"

#include "estep/match/maskiou.h"
#include "flow/parsed.h"

namespace rematch {

std::vector<int> repeated_objects(const std::vector<SceneObject>& objects, double iou,
                                  int resolution) {
  const std::vector<Geometry> geometries = get_geometries(objects);
  MaskCache masks(geometries, resolution);
  const auto is_repeat = [&](size_t later, size_t earlier) {
    return objects[later].desc == objects[earlier].desc &&
           mask_iou(geometries[later], masks.get(static_cast<int>(later)), geometries[earlier],
                    masks.get(static_cast<int>(earlier))) >= iou;
  };

  std::vector<int> repeated;
  for (size_t i = 0; i < objects.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!is_repeat(i, j)) continue;
      repeated.push_back(static_cast<int>(i));
      break;
    }
  }
  return repeated;
}

}  // namespace rematch
