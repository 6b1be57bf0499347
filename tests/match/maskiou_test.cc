#include "learn/estep/match/maskiou.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rematch {
namespace {

Geometry box(int x1, int y1, int x2, int y2) { return {GeometryKind::kBbox2d, {x1, y1, x2, y2}}; }
Geometry poly(std::vector<int> bins) { return {GeometryKind::kPoly, std::move(bins)}; }
int64_t area(const Geometry& geometry, int resolution = 256) {
  return rasterize(geometry, resolution).area;
}
double iou(const Geometry& a, const Geometry& b, int resolution = 256) {
  return mask_iou(a, rasterize(a, resolution), b, rasterize(b, resolution));
}
std::vector<Vertex> quad(double x1, double y1, double x2, double y2) {
  return {{x1, y1}, {x2, y1}, {x2, y2}, {x1, y2}};
}
// Uniform, unlike rapidcheck's own ranges, which start small. Empty ranges give their lower end.
int pick(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}
using Runs = std::vector<int64_t>;

}  // namespace

TEST(Rasterize, FillsTheCanvasAndClampsWhatLiesOutside) {
  EXPECT_EQ(area(box(0, 0, 999, 999)), 65536);
  EXPECT_EQ(area(box(-50, -50, 1200, 1200)), 65536);
}

TEST(Rasterize, GivesSmallObjectsFewPixelsOrNone) {
  EXPECT_EQ(area(box(500, 500, 501, 501)), 0);
  EXPECT_EQ(area(box(0, 0, 2, 2)), 1);
  EXPECT_EQ(rasterize(box(0, 0, 2, 2), 256).runs, (Runs{0, 1, 65535}));
  EXPECT_EQ(rasterize(box(997, 997, 999, 999), 256).runs, (Runs{65535, 1}));
}

TEST(Rasterize, IsEmptyWhenNarrowerThanTheSubPixelGrid) {
  const std::vector<double> expected = {1.0, .7437, .4880, .2327, 0.0};
  for (int width = 0; width <= 4; ++width) {
    int empty = 0;
    const int positions = 1000 - width;
    for (int x = 0; x < positions; ++x) empty += area(box(x, 0, x + width, 999)) == 0;
    EXPECT_NEAR(static_cast<double>(empty) / positions, expected[static_cast<size_t>(width)], 6e-4)
        << width;
  }
}

TEST(Rasterize, FillsEvenOddWhateverTheWinding) {
  EXPECT_EQ(area(poly({100, 100, 300, 100, 100, 300})), 1275);
  EXPECT_EQ(area(poly({100, 100, 300, 300, 300, 100})), 1275);
  EXPECT_EQ(area(poly({100, 100, 300, 300, 300, 100, 100, 300})), 1300);  // a bow-tie
}

TEST(Rasterize, IgnoresARepeatedVertex) {
  EXPECT_EQ(area(poly({100, 100, 100, 100, 300, 100, 300, 300})), 1275);
  EXPECT_EQ(rasterize(poly({100, 100, 100, 100, 300, 100, 300, 300}), 256).runs,
            rasterize(poly({100, 100, 300, 100, 300, 300}), 256).runs);
}

TEST(RasterizePolygon, GivesTheRunsOfTheWorkedCases) {
  EXPECT_EQ(rasterize_polygon(quad(0, 0, 2, 2), 4, 4).runs, (Runs{0, 2, 2, 2, 10}));
  EXPECT_EQ(rasterize_polygon(quad(1, 1, 3, 4), 4, 4).runs, (Runs{5, 3, 1, 3, 4}));
  EXPECT_EQ(rasterize_polygon(quad(0.4, 0.4, 1.6, 1.6), 4, 4).runs, (Runs{0, 2, 2, 2, 10}));
}

RC_GTEST_PROP(Rasterize, ARectangleFollowsItsClosedForm, ()) {
  const int resolution = pick(1, 80);
  const int x1 = pick(0, 1000), x2 = pick(x1, 1000);
  const int y1 = pick(0, 1000), y2 = pick(y1, 1000);
  const auto grid = [resolution](int bin) {
    return static_cast<int64_t>(5 * (static_cast<double>(bin) * resolution / 1000.0) + 0.5);
  };
  Runs runs;
  bool colour = false;
  runs.push_back(0);
  for (int c = 0; c < resolution; ++c) {
    for (int r = 0; r < resolution; ++r) {
      const bool set = grid(x1) <= 5 * c + 2 && 5 * c + 2 < grid(x2) && grid(y1) <= 5 * r + 2 &&
                       5 * r + 2 < grid(y2);
      if (set != colour) {
        runs.push_back(0);
        colour = set;
      }
      ++runs.back();
    }
  }
  RC_ASSERT(rasterize(box(x2, y2, x1, y1), resolution).runs == runs);
}

TEST(MaskIou, GivesTheWorkedCases) {
  EXPECT_EQ(area(box(100, 100, 200, 200)), 625);
  EXPECT_EQ(area(box(150, 100, 250, 200)), 650);
  EXPECT_DOUBLE_EQ(iou(box(100, 100, 200, 200), box(150, 100, 250, 200)), 13.0 / 38.0);
  EXPECT_DOUBLE_EQ(iou(poly({100, 100, 300, 100, 100, 300}), box(100, 100, 300, 300)), 25.0 / 51.0);
  EXPECT_EQ(area(box(0, 0, 999, 999), 1), 1);
  EXPECT_DOUBLE_EQ(iou(box(0, 0, 999, 999), box(0, 0, 500, 500), 1), 1.0);
}

TEST(MaskIou, ComparesBinsWhenAMaskIsEmpty) {
  EXPECT_DOUBLE_EQ(iou(box(500, 500, 501, 501), box(500, 500, 501, 501)), 1.0);
  EXPECT_DOUBLE_EQ(iou(box(500, 500, 500, 500), box(500, 500, 501, 501)), 0.25);
  EXPECT_DOUBLE_EQ(iou(box(500, 500, 500, 500), box(501, 500, 501, 500)), 0.0);
  EXPECT_DOUBLE_EQ(iou(box(501, 501, 500, 500), poly({500, 500, 501, 500, 501, 501})), 1.0);
}

TEST(MaskIou, ClampsTheBinsItCompares) {
  EXPECT_DOUBLE_EQ(iou(box(-9, -9, 0, 0), box(0, 0, 0, 0)), 1.0);
}

RC_GTEST_PROP(MaskIou, IsSymmetricAndBetweenZeroAndOne, ()) {
  const auto draw = [] {
    const auto bins = *rc::gen::container<std::vector<int>>(
        2 * static_cast<size_t>(pick(3, 9)),
        rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 1000)));
    return poly(bins);
  };
  const Geometry a = draw(), b = draw();
  const double value = iou(a, b, 64);
  RC_ASSERT(value == iou(b, a, 64));
  RC_ASSERT(value >= 0.0 && value <= 1.0);
  RC_ASSERT(iou(a, a, 64) == 1.0);
}

TEST(IntersectionArea, CountsSharedPixels) {
  const Mask a = rasterize_polygon(quad(0, 0, 2, 2), 4, 4),
             b = rasterize_polygon(quad(1, 1, 3, 4), 4, 4);
  EXPECT_EQ(intersection_area(a, b), 1);
  EXPECT_EQ(intersection_area(a, a), a.area);
}

}  // namespace rematch
