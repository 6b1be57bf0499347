#include "learn/estep/match/repeats.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/flow/parsed.h"
#include "learn/estep/match/maskiou.h"

namespace rematch {
namespace {

SceneObject named_box(const std::string& desc, int x) {
  return {desc, {GeometryKind::kBbox2d, {x, 100, x + 200, 300}}};
}

// Each overlaps its neighbour with IoU 1/1.5 = 0.67 (160 of 240) and the next but one with 0.43.
const std::vector<SceneObject> kChain = {named_box("cat", 100), named_box("cat", 140),
                                         named_box("cat", 180)};

/// By every pair.
std::vector<int> compare_all(const std::vector<SceneObject>& objects, double iou, int resolution) {
  const std::vector<Geometry> geometries = get_geometries(objects);
  MaskCache masks(geometries, resolution);
  std::vector<int> repeated;
  for (int i = 0; i < static_cast<int>(objects.size()); ++i) {
    const auto repeats = [&](int j) {
      const auto later = static_cast<size_t>(i), earlier = static_cast<size_t>(j);
      return objects[later].desc == objects[earlier].desc &&
             mask_iou(geometries[later], masks.get(i), geometries[earlier], masks.get(j)) >= iou;
    };
    int j = 0;
    while (j < i && !repeats(j)) ++j;
    if (j < i) repeated.push_back(i);
  }
  return repeated;
}

// Uniform, unlike rapidcheck's own ranges, which start small.
int pick_number(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

/// Boxes and outlines of a few sizes, close to each other; some of their masks are empty.
std::vector<SceneObject> crowded_scene() {
  const int spread = *rc::gen::element(30, 200, 900);
  std::vector<SceneObject> objects(60);
  for (SceneObject& object : objects) {
    object.desc = *rc::gen::element<std::string>("cat", "dog");
    object.geometry.kind = *rc::gen::element(GeometryKind::kBbox2d, GeometryKind::kPoly);
    const int side = *rc::gen::element(1, 4, 12, 90, 400), x = pick_number(0, spread),
              y = pick_number(0, spread);
    const int num_values =
        object.geometry.kind == GeometryKind::kBbox2d ? 4 : pick_number(3, 6) * 2;
    for (int i = 0; i < num_values; ++i)
      object.geometry.bins.push_back(
          std::min(999, (i % 2 == 0 ? x : y) + pick_number(0, side + 1)));
  }
  return objects;
}

}  // namespace

TEST(RepeatedObjects, RepeatAnyEarlierObject) {
  EXPECT_EQ(repeated_objects(kChain, 0.5, 256), (std::vector<int>{1, 2}));
}

TEST(RepeatedObjects, NeedTheSameDesc) {
  EXPECT_TRUE(repeated_objects({named_box("cat", 100), named_box("Cat", 100)}, 0.5, 256).empty());
  EXPECT_EQ(repeated_objects({named_box("cat", 100), named_box("dog", 100), named_box("cat", 100)},
                             1.0, 256),
            (std::vector<int>{2}));
}

RC_GTEST_PROP(RepeatedObjects, AreThoseOfEveryPair, ()) {
  const std::vector<SceneObject> objects = crowded_scene();
  const double iou = *rc::gen::element(0.05, 0.3, 0.5, 0.8, 1.0);
  const int resolution = *rc::gen::element(7, 64, 256);
  RC_ASSERT(repeated_objects(objects, iou, resolution) == compare_all(objects, iou, resolution));
}

}  // namespace rematch
