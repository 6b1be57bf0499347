#include "learn/augment/clip.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rematch {
namespace {

constexpr int kSide = 999;  // a bin is a pixel

using Mask = std::vector<uint8_t>;  // row-major

// Pixel centres inside a polygon or box, by the even-odd rule.
Mask mask_of(const Geometry& geometry, int width, int height) {
  std::vector<std::array<double, 2>> points;
  const auto add = [&](int x, int y) {
    points.push_back({x * double(width) / 999, y * double(height) / 999});
  };
  const std::vector<int>& b = geometry.bins;
  if (geometry.kind == GeometryKind::kBbox2d) {
    add(b[0], b[1]), add(b[2], b[1]), add(b[2], b[3]), add(b[0], b[3]);
  } else {
    for (size_t i = 0; i < b.size(); i += 2) add(b[i], b[i + 1]);
  }
  Mask mask(static_cast<size_t>(width * height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      bool inside = false;
      for (size_t i = 0, j = points.size() - 1; i < points.size(); j = i++) {
        const auto &p = points[i], &q = points[j];
        if ((p[1] > y + 0.5) != (q[1] > y + 0.5) &&
            x + 0.5 < (q[0] - p[0]) * (y + 0.5 - p[1]) / (q[1] - p[1]) + p[0])
          inside = !inside;
      }
      mask[static_cast<size_t>(y * width + x)] = inside;
    }
  }
  return mask;
}

// Pixels inside with a neighbour outside.
int64_t num_edge_pixels(const Mask& mask, int width) {
  const int height = static_cast<int>(mask.size()) / width;
  const auto at = [&](int x, int y) {
    return x >= 0 && y >= 0 && x < width && y < height && mask[static_cast<size_t>(y * width + x)];
  };
  int64_t num_edges = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      num_edges += at(x, y) && !(at(x - 1, y) && at(x + 1, y) && at(x, y - 1) && at(x, y + 1));
  }
  return num_edges;
}

int64_t count(const Mask& mask) { return std::count(mask.begin(), mask.end(), 1); }

Geometry box(int x1, int y1, int x2, int y2) { return {GeometryKind::kBbox2d, {x1, y1, x2, y2}}; }

// Pixels that the crop draws: the nearest source pixel of each target pixel.
Mask cropped(const Mask& mask, const std::array<int64_t, 4>& crop, int width, int height) {
  Mask result(mask.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto from_x = crop[0] + static_cast<int64_t>((x + 0.5) * double(crop[2]) / width);
      const auto from_y = crop[1] + static_cast<int64_t>((y + 0.5) * double(crop[3]) / height);
      result[static_cast<size_t>(y * width + x)] =
          mask[static_cast<size_t>(from_y * width + from_x)];
    }
  }
  return result;
}

std::array<int64_t, 4> any_crop(int width, int height) {
  const int64_t w = *rc::gen::inRange(width / 4, width + 1),
                h = *rc::gen::inRange(height / 4, height + 1);
  return {*rc::gen::inRange<int64_t>(0, width - w + 1),
          *rc::gen::inRange<int64_t>(0, height - h + 1), w, h};
}

Geometry any_star() {
  // Vertices around a centre: any shape without crossings, convex or not.
  const int n = *rc::gen::inRange(3, 12), cx = *rc::gen::inRange(150, 850),
            cy = *rc::gen::inRange(150, 850);
  Geometry poly{GeometryKind::kPoly, {}};
  for (int i = 0; i < n; ++i) {
    const double angle = 2 * M_PI * i / n, radius = *rc::gen::inRange(40, 150);
    poly.bins.push_back(std::clamp(static_cast<int>(cx + radius * std::cos(angle)), 0, 999));
    poly.bins.push_back(std::clamp(static_cast<int>(cy + radius * std::sin(angle)), 0, 999));
  }
  return poly;
}

}  // namespace

RC_GTEST_PROP(Clip, BoxOfACropIsTheBoundingBoxOfTheCroppedMask, ()) {
  const int x1 = *rc::gen::inRange(0, 990), y1 = *rc::gen::inRange(0, 990);
  const Geometry before =
      box(x1, y1, *rc::gen::inRange(x1 + 1, 1000), *rc::gen::inRange(y1 + 1, 1000));
  const auto crop = any_crop(kSide, kSide);
  const std::optional<Geometry> after = clip_to(before, crop, kSide, kSide, 0);
  // Pixels x1..x2-1 of the mask, in the crop.
  std::array<int64_t, 2> low, high;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t begin = crop[axis], end = crop[axis] + crop[axis + 2];
    low[axis] = std::max<int64_t>(before.bins[axis], begin) - begin;
    high[axis] = std::min<int64_t>(before.bins[axis + 2], end) - begin;
  }
  if (low[0] >= high[0] || low[1] >= high[1]) return;  // no pixel is left
  RC_ASSERT(after.has_value());
  for (size_t axis = 0; axis < 2; ++axis) {
    // Integers: a product with 999.0 / size misses half of a bin.
    const auto to_bin = [size = crop[axis + 2]](int64_t px) {
      return (2 * 999 * px + size) / (2 * size);
    };
    RC_ASSERT(after->bins[axis] == to_bin(low[axis]));
    RC_ASSERT(after->bins[axis + 2] == to_bin(high[axis]));
  }
}

RC_GTEST_PROP(Clip, OutlineOfACropCoversTheCroppedMask, ()) {
  constexpr int kWidth = 320, kHeight = 240;
  const Geometry before = any_star();
  const auto crop = any_crop(kWidth, kHeight);
  const Mask whole = mask_of(before, kWidth, kHeight),
             wanted = cropped(whole, crop, kWidth, kHeight);
  const std::optional<Geometry> after = clip_to(before, crop, kWidth, kHeight, 1e-9);
  if (!after) return RC_ASSERT(count(wanted) < 600);
  const Mask found = mask_of(*after, kWidth, kHeight);
  int64_t both = 0, either = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    both += found[i] & wanted[i];
    either += found[i] | wanted[i];
  }
  // The nearest source pixel is at most half of one away: the masks differ along the outline only.
  const double px_per_source_px =
      std::max(double(kWidth) / double(crop[2]), double(kHeight) / double(crop[3]));
  RC_ASSERT(static_cast<double>(either - both) <=
            px_per_source_px * static_cast<double>(num_edge_pixels(found, kWidth)) + 20);
}

RC_GTEST_PROP(Clip, WholePictureChangesNothing, ()) {
  const Geometry before = any_star();
  const std::optional<Geometry> after = clip_to(before, {0, 0, 640, 417}, 640, 417, 0.4);
  RC_ASSERT(after.has_value());
  RC_ASSERT(after->bins.size() <= before.bins.size());
  if (after->bins.size() == before.bins.size()) RC_ASSERT(*after == before);
}

TEST(Clip, KeepsObjectsOfWhichFortyPercentAreVisible) {
  // 100 of 250 pixels, and 99 of 250.
  EXPECT_TRUE(clip_to(box(0, 0, 250, 100), {0, 0, 100, 999}, kSide, kSide, 0.4));
  EXPECT_FALSE(clip_to(box(0, 0, 250, 100), {0, 0, 99, 999}, kSide, kSide, 0.4));
  const Geometry triangle{GeometryKind::kPoly, {0, 0, 200, 0, 0, 200}};
  EXPECT_TRUE(clip_to(triangle, {0, 0, 46, 999}, kSide, kSide, 0.4));   // 1 - (154/200)² = 0.407
  EXPECT_FALSE(clip_to(triangle, {0, 0, 45, 999}, kSide, kSide, 0.4));  // 0.399
}

TEST(Clip, TakesThingsWithoutAreaByTheirLength) {
  EXPECT_TRUE(clip_to(box(100, 50, 100, 90), {50, 0, 100, 100}, kSide, kSide, 0.4));
  EXPECT_FALSE(clip_to(box(100, 50, 100, 250), {50, 0, 100, 100}, kSide, kSide, 0.4));
  EXPECT_TRUE(clip_to(box(60, 60, 60, 60), {50, 50, 100, 100}, kSide, kSide, 0.4));
  EXPECT_FALSE(clip_to(box(40, 60, 40, 60), {50, 50, 100, 100}, kSide, kSide, 0.4));
  const Geometry line{GeometryKind::kPoly, {100, 10, 100, 20, 100, 30}};
  EXPECT_TRUE(clip_to(line, {50, 0, 100, 100}, kSide, kSide, 0.4));
  EXPECT_FALSE(clip_to(line, {150, 0, 100, 100}, kSide, kSide, 0.4));
}

TEST(Clip, CutsAConcaveOutlineAtTheBorder) {
  // A "U" whose arms are cut apart from its base stays one outline along the border.
  const Geometry u{
      GeometryKind::kPoly,
      {100, 100, 200, 100, 200, 400, 300, 400, 300, 100, 400, 100, 400, 500, 100, 500}};
  const std::optional<Geometry> arms = clip_to(u, {0, 0, 999, 300}, kSide, kSide, 0.3);
  ASSERT_TRUE(arms);
  const Mask mask = mask_of(*arms, 333, 333);
  EXPECT_EQ(mask[static_cast<size_t>(200 * 333 + 50)], 1);
  EXPECT_EQ(mask[static_cast<size_t>(200 * 333 + 83)], 0);  // between the arms
  EXPECT_EQ(mask[static_cast<size_t>(200 * 333 + 116)], 1);
}

}  // namespace rematch
