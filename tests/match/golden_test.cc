// Masks against pycocotools and assignments against scipy; see tests/golden/match/*.how.
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>

#include "base/file.h"
#include "learn/estep/match/assignment.h"
#include "learn/estep/match/maskiou.h"
#include "support/paths.h"

namespace rematch {
namespace {

/// splitmix64, as in dev/goldens/match_*.py.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  int below(int limit) {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<int>((z ^ (z >> 31)) % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

Geometry draw_geometry(Draw& draw) {
  const int kind = draw.below(8);
  const int spread =
      std::vector<int>{1000, 1000, 12, 4, 60, 300, 1000, 1100}[static_cast<size_t>(kind)];
  const int x0 = draw.below(1001 - std::min(spread, 1000));
  const int y0 = draw.below(1001 - std::min(spread, 1000));
  const bool is_box = kind == 0 || kind == 2;
  const int num = is_box ? 2 : 3 + draw.below(7);
  Geometry geometry{is_box ? GeometryKind::kBbox2d : GeometryKind::kPoly, {}};
  for (int i = 0; i < num; ++i) {
    if (i > 0 && draw.below(10) == 0) {
      const size_t size = geometry.bins.size();
      const int x = geometry.bins[size - 2], y = geometry.bins[size - 1];
      geometry.bins.insert(geometry.bins.end(), {x, y});
    } else {
      const int x = x0 + draw.below(spread);
      const int y = y0 + draw.below(spread);
      geometry.bins.insert(geometry.bins.end(), {x, y});
    }
  }
  return geometry;
}

uint32_t run_hash(const Mask& mask) {
  uint32_t value = 2166136261u;
  for (const int64_t run : mask.runs) {
    for (const char c : std::to_string(run) + ",")
      value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return value;
}

CostMatrix draw_matrix(Draw& draw) {
  if (draw.below(2) == 0) {
    const int n = 1 + draw.below(14);
    const int high = 1 + draw.below(4);
    CostMatrix costs(n);
    for (double& value : costs.values) value = draw.below(high);
    return costs;
  }
  const int num_p = 1 + draw.below(9);
  const int num_g = 1 + draw.below(9);
  const double fp = draw.below(12) / 10.0;
  const double fn = draw.below(12) / 10.0;
  CostMatrix costs(num_p + num_g);
  for (int p = 0; p < num_p; ++p) {
    for (int c = num_g; c < costs.size; ++c) costs.at(p, c) = fp;
  }
  for (int r = num_p; r < costs.size; ++r) {
    for (int g = 0; g < num_g; ++g) costs.at(r, g) = fn;
  }
  for (int p = 0; p < num_p; ++p) {
    for (int g = 0; g < num_g; ++g)
      costs.at(p, g) = draw.below(2) != 0 ? 1e6 : draw.below(8) / 10.0;
  }
  return costs;
}

}  // namespace

TEST(RasterizeGolden, EqualsPycocotoolsOnThousandsOfRandomPairs) {
  const std::vector<int> resolutions = {1, 2, 3, 7, 16, 64, 100, 128, 255, 256};
  std::istringstream golden(read_file(test::source_path("tests/golden/match/masks.txt")));
  Draw draw(20260119);
  int64_t resolution = 0, area_a = 0, area_b = 0, both = 0, hash_a = 0, hash_b = 0;
  int count = 0;
  for (; golden >> resolution >> area_a >> area_b >> both >> hash_a >> hash_b; ++count) {
    const int drawn = draw.below(2) != 0 ? resolutions[static_cast<size_t>(draw.below(10))] : 256;
    ASSERT_EQ(drawn, resolution) << "pair " << count;
    const Geometry a = draw_geometry(draw);
    const Geometry b = draw_geometry(draw);
    const Mask mask_a = rasterize(a, drawn), mask_b = rasterize(b, drawn);
    ASSERT_EQ(mask_a.area, area_a) << "pair " << count;
    ASSERT_EQ(mask_b.area, area_b) << "pair " << count;
    ASSERT_EQ(intersection_area(mask_a, mask_b), both) << "pair " << count;
    ASSERT_EQ(run_hash(mask_a), hash_a) << "pair " << count;
    ASSERT_EQ(run_hash(mask_b), hash_b) << "pair " << count;
  }
  EXPECT_EQ(count, 3000);
}

TEST(SolveAssignmentGolden, EqualsScipyOnThousandsOfMatricesWithTies) {
  std::istringstream golden(read_file(test::source_path("tests/golden/match/assignments.txt")));
  Draw draw(19);
  std::string line;
  int count = 0;
  for (; std::getline(golden, line); ++count) {
    std::istringstream columns(line);
    std::vector<int> expected;
    for (int column = 0; columns >> column;) expected.push_back(column);
    ASSERT_EQ(solve_assignment(draw_matrix(draw)), expected) << "matrix " << count;
  }
  EXPECT_EQ(count, 4000);
}

}  // namespace rematch
