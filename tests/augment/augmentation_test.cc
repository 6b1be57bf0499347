#include "learn/augment/augmentation.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <set>

namespace rematch {
namespace {

constexpr AugmentSettings kAll{
    .hflip = 0.5, .crop = 0.3, .color = 0.4, .vflip = 0.5, .rot90 = 0.75};

Geometry any_geometry() {
  const auto bin = [] { return *rc::gen::inRange(0, 1000); };
  if (*rc::gen::arbitrary<bool>()) {
    const int x = bin(), y = bin();
    return {GeometryKind::kBbox2d, {x, y, *rc::gen::inRange(x, 1000), *rc::gen::inRange(y, 1000)}};
  }
  Geometry poly{GeometryKind::kPoly, {}};
  const int n = *rc::gen::inRange(3, 9);
  for (int i = 0; i < 2 * n; ++i) poly.bins.push_back(bin());
  return poly;
}

Sample any_sample() {
  Sample sample{.sample_id = *rc::gen::inRange(0, 1000),
                .image_paths = {"a.png"},
                .width_px = *rc::gen::inRange(20, 2000),
                .height_px = *rc::gen::inRange(20, 2000)};
  const int n = *rc::gen::inRange(0, 6);
  for (int i = 0; i < n; ++i) sample.objects.push_back({"thing", any_geometry()});
  return sample;
}

}  // namespace

RC_GTEST_PROP(Augmentation, FlippedTwiceIsTheIdentity, ()) {
  const Sample sample = any_sample();
  std::vector<SceneObject> objects = sample.objects;
  const bool is_vertical = *rc::gen::arbitrary<bool>();
  const ImageChange flip{.orientation =
                             is_vertical ? ImageChange::kUpsideDown : ImageChange::kMirrored};
  const auto move = is_vertical ? kVflip.move : kHflip.move;
  move(flip, sample.width_px, sample.height_px, objects);
  for (const SceneObject& object : objects) {
    if (object.geometry.kind == GeometryKind::kBbox2d)
      RC_ASSERT(object.geometry.bins[0] <= object.geometry.bins[2] &&
                object.geometry.bins[1] <= object.geometry.bins[3]);
  }
  move(flip, sample.width_px, sample.height_px, objects);
  RC_ASSERT(objects == sample.objects);
}

RC_GTEST_PROP(Augmentation, FourQuarterTurnsAreTheIdentity, ()) {
  const Sample sample = any_sample();
  std::vector<SceneObject> once = sample.objects, twice = sample.objects, thrice = sample.objects;
  const auto turn = [&](int quarters, std::vector<SceneObject>& objects) {
    kRot90.move({.orientation = quarters * ImageChange::kQuarterTurn}, sample.width_px,
                sample.height_px, objects);
  };
  turn(1, once);
  turn(2, twice);
  turn(3, thrice);
  std::vector<SceneObject> objects = once;
  turn(1, objects);
  RC_ASSERT(objects == twice);
  turn(1, objects);
  RC_ASSERT(objects == thrice);
  turn(1, objects);
  RC_ASSERT(objects == sample.objects);
}

RC_GTEST_PROP(Augmentation, AHalfTurnIsBothMirrors, ()) {
  const Sample sample = any_sample();
  std::vector<SceneObject> turned = sample.objects, mirrored = sample.objects;
  kRot90.move({.orientation = 2 * ImageChange::kQuarterTurn}, 1, 1, turned);
  kHflip.move({.orientation = ImageChange::kMirrored}, 1, 1, mirrored);
  kVflip.move({.orientation = ImageChange::kUpsideDown}, 1, 1, mirrored);
  RC_ASSERT(turned == mirrored);
}

TEST(Augmentation, AQuarterTurnIsClockwise) {
  std::vector<SceneObject> objects{{"box", {GeometryKind::kBbox2d, {10, 20, 300, 400}}},
                                   {"outline", {GeometryKind::kPoly, {0, 0, 500, 0, 0, 200}}}};
  kRot90.move({.orientation = ImageChange::kQuarterTurn}, 640, 480, objects);
  EXPECT_EQ(objects[0].geometry.bins, (std::vector<int>{599, 10, 979, 300}));
  EXPECT_EQ(objects[1].geometry.bins, (std::vector<int>{999, 0, 999, 500, 799, 0}));
}

TEST(Augmentation, AQuarterTurnSwapsTheSidesOfThePicture) {
  const Sample sample{.sample_id = 3, .width_px = 640, .height_px = 480};
  std::set<int> seen;
  for (int epoch = 0; epoch < 60; ++epoch) {
    const Sample shown = augment_sample(sample, {.rot90 = 0.75}, 1, epoch);
    seen.insert(shown.change.num_quarter_turns());
    EXPECT_EQ(shown.width_px, shown.change.swaps_sides() ? 480 : 640);
    EXPECT_EQ(shown.height_px, shown.change.swaps_sides() ? 640 : 480);
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2, 3}));
}

TEST(Augmentation, NewKindsDoNotMoveTheDrawsOfTheOthers) {
  const Sample sample{.sample_id = 5, .width_px = 640, .height_px = 480};
  for (int epoch = 0; epoch < 20; ++epoch) {
    const ImageChange before =
        augment_sample(sample, {.hflip = 0.5, .crop = 0.3, .color = 0.4}, 7, epoch).change;
    const ImageChange all = augment_sample(sample, kAll, 7, epoch).change;
    EXPECT_EQ(all.crop_px, before.crop_px);
    EXPECT_EQ(all.color, before.color);
    EXPECT_EQ(all.is_mirrored(), before.is_mirrored());
  }
}

RC_GTEST_PROP(Augmentation, DependsOnSeedEpochAndSampleOnly, ()) {
  Sample sample = any_sample();
  const Sample first = augment_sample(sample, kAll, 7, 3),
               again = augment_sample(sample, kAll, 7, 3);
  RC_ASSERT(first.change == again.change);
  RC_ASSERT(first.objects == again.objects);
}

RC_GTEST_PROP(Augmentation, GivesLegalObjectsInALegalCrop, ()) {
  const Sample sample = any_sample();
  const Sample shown = augment_sample(sample, kAll, 1, *rc::gen::inRange(0, 50));
  const auto [left, top, width, height] = shown.change.crop_px;
  RC_ASSERT(left >= 0 && top >= 0);
  RC_ASSERT(left + width <= sample.width_px && top + height <= sample.height_px);
  if (shown.change.has_crop())
    RC_ASSERT(static_cast<double>(width * height) >=
              0.3 * static_cast<double>(sample.width_px) * sample.height_px);
  RC_ASSERT(shown.objects.empty() == sample.objects.empty());
  for (const SceneObject& object : shown.objects) {
    const std::vector<int>& bins = object.geometry.bins;
    for (const int bin : bins) RC_ASSERT(bin >= 0 && bin < kNumBins);
    if (object.geometry.kind == GeometryKind::kPoly)
      RC_ASSERT(bins.size() >= 6 && bins.size() % 2 == 0);
    else
      RC_ASSERT(bins.size() == 4 && bins[0] <= bins[2] && bins[1] <= bins[3]);
  }
}

TEST(Augmentation, IsOffByDefault) {
  const Sample sample{.sample_id = 3,
                      .width_px = 64,
                      .height_px = 64,
                      .objects = {{"a", {GeometryKind::kBbox2d, {1, 2, 3, 4}}}}};
  const Sample shown = augment_sample(sample, {}, 1, 0);
  EXPECT_EQ(shown.objects, sample.objects);
  EXPECT_FALSE(shown.change.is_any());
}

TEST(Augmentation, DrawsAnotherPictureForEachEpochAndSample) {
  std::set<ImageChange> seen;
  int num_flipped = 0;
  for (int id = 0; id < 20; ++id) {
    for (int epoch = 0; epoch < 20; ++epoch) {
      const Sample sample{.sample_id = id, .width_px = 640, .height_px = 480};
      const ImageChange change = augment_sample(sample, kAll, 42, epoch).change;
      seen.insert(change);
      num_flipped += change.is_mirrored();
    }
  }
  EXPECT_EQ(seen.size(), 400u);
  EXPECT_NEAR(num_flipped, 200, 40);
}

TEST(Augmentation, ACropThatWouldRemoveEveryObjectStaysAway) {
  // One object as large as the picture: no crop of at most a third keeps 40 percent of it.
  const Sample sample{.sample_id = 0,
                      .width_px = 100,
                      .height_px = 100,
                      .objects = {{"all", {GeometryKind::kBbox2d, {0, 0, 999, 999}}}}};
  for (int epoch = 0; epoch < 30; ++epoch) {
    ImageChange change;
    kCrop.draw(sample, {.crop = 0.05}, static_cast<uint64_t>(epoch), change);
    if (change.has_crop()) {
      EXPECT_GE(change.crop_px[2] * change.crop_px[3], 4000);
    }
  }
  // Tiny and in a corner: the other draws still crop.
  int num_cropped = 0;
  Sample corner = sample;
  corner.objects = {{"dot", {GeometryKind::kBbox2d, {0, 0, 5, 5}}}};
  for (int epoch = 0; epoch < 100; ++epoch) {
    const Sample shown = augment_sample(corner, {.crop = 0.5}, 1, epoch);
    ASSERT_EQ(shown.objects.size(), 1u);
    num_cropped += shown.change.has_crop();
  }
  EXPECT_GT(num_cropped, 10);
}

TEST(Augmentation, OutlinesGainAtMostFourVertices) {
  // A comb: a cut through its teeth would double its vertices.
  Geometry comb{GeometryKind::kPoly, {0, 999}};
  for (int x = 0; x < 990; x += 30) {
    comb.bins.insert(comb.bins.end(), {x, 0, x + 15, 0, x + 15, 900, x + 30, 900});
  }
  comb.bins.insert(comb.bins.end(), {999, 999});
  const Sample sample{.width_px = 512, .height_px = 512, .objects = {{"comb", comb}}};
  for (int epoch = 0; epoch < 50; ++epoch) {
    const Sample shown = augment_sample(sample, {.crop = 0.3}, 1, epoch);
    ASSERT_EQ(shown.objects.size(), 1u);
    EXPECT_LE(shown.objects[0].geometry.bins.size(), comb.bins.size() + 2 * kMaxNewVertices);
  }
}

}  // namespace rematch
