#include "learn/estep/teach/coord_targets.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

Geometry bbox(std::vector<int> bins) { return {GeometryKind::kBbox2d, std::move(bins)}; }
Geometry poly(std::vector<int> bins) { return {GeometryKind::kPoly, std::move(bins)}; }
using Bins = std::vector<int>;

int pick(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

}  // namespace

TEST(CoordTargets, AreTheGroundTruthForTwoBoxes) {
  EXPECT_EQ(coord_targets(bbox({1, 2, 3, 4}), bbox({900, 10, 5, 7}), {}), (Bins{900, 10, 5, 7}));
}

TEST(CoordTargets, MoveEachVertexToItsTarget) {
  // Far apart and sharp: every vertex goes to its own counterpart, whatever the order.
  const TargetSettings sharp{.ot_epsilon = 1.0, .ot_iters = 50};
  EXPECT_EQ(coord_targets(poly({102, 100, 500, 103, 300, 601}),
                          poly({300, 600, 100, 100, 500, 100}), sharp),
            (Bins{100, 100, 500, 100, 300, 600}));
}

TEST(CoordTargets, AreTheBoundsOfTheMovedCornersOfABox) {
  const TargetSettings sharp{.ot_epsilon = 1.0, .ot_iters = 50};
  EXPECT_EQ(coord_targets(bbox({101, 99, 499, 301}), poly({100, 100, 500, 100, 500, 300, 100, 300}),
                          sharp),
            (Bins{100, 100, 500, 300}));
  // An inverted box has the same corners; its targets are in order.
  EXPECT_EQ(coord_targets(bbox({499, 301, 101, 99}), poly({100, 100, 500, 100, 500, 300, 100, 300}),
                          sharp),
            (Bins{100, 100, 500, 300}));
}

TEST(CoordTargets, TakeABoxAsItsFourCornersForAPredictedPolygon) {
  const TargetSettings sharp{.ot_epsilon = 1.0, .ot_iters = 50};
  EXPECT_EQ(coord_targets(poly({101, 99, 499, 101, 501, 299, 99, 301}), bbox({100, 100, 500, 300}),
                          sharp),
            (Bins{100, 100, 500, 100, 500, 300, 100, 300}));
}

TEST(CoordTargets, DrawEverythingToTheCentreWhenSoft) {
  const TargetSettings soft{.ot_epsilon = 1e9};
  EXPECT_EQ(
      coord_targets(poly({1, 1, 900, 1, 900, 900}), poly({100, 100, 200, 100, 300, 400}), soft),
      (Bins{200, 200, 200, 200, 200, 200}));
}

TEST(CoordTargets, MeasureByTheChosenDistance) {
  const Geometry predicted = poly({100, 100, 130, 140, 400, 400}),
                 truth = poly({110, 110, 135, 100, 420, 380});
  EXPECT_NE(coord_targets(predicted, truth, {.ot_cost = OtCost::kL1, .ot_epsilon = 20}),
            coord_targets(predicted, truth, {.ot_cost = OtCost::kL2, .ot_epsilon = 20}));
}

TEST(TransportPoints, FollowsTheFormulaByHand) {
  // One round on two points each: u = a/(Kv), v = b/(Kᵀu), rows of u·K·v over their sums.
  const std::vector<BinPoint> from = {{0, 0}, {10, 0}}, to = {{0, 0}, {20, 0}};
  const double k[2][2] = {{std::exp(0.0), std::exp(-2.0)}, {std::exp(-1.0), std::exp(-1.0)}};
  const double u[2] = {0.5 / (k[0][0] + k[0][1]), 0.5 / (k[1][0] + k[1][1])};
  const double v[2] = {0.5 / (k[0][0] * u[0] + k[1][0] * u[1]),
                       0.5 / (k[0][1] * u[0] + k[1][1] * u[1])};
  const std::vector<BinPoint> moved =
      transport_points(from, to, {.ot_epsilon = 10.0, .ot_iters = 1});
  for (size_t i = 0; i < 2; ++i) {
    const double row[2] = {u[i] * k[i][0] * v[0], u[i] * k[i][1] * v[1]};
    EXPECT_NEAR(moved[i].x, 20.0 * row[1] / (row[0] + row[1]), 1e-12);
    EXPECT_EQ(moved[i].y, 0.0);
  }
}

TEST(TransportPoints, ClampsTheExponentSoThatFarPointsStayFinite) {
  const std::vector<BinPoint> moved =
      transport_points({{0, 0}, {0, 1}, {1, 0}}, {{999, 999}, {998, 999}}, {.ot_epsilon = 1e-300});
  for (const BinPoint& point : moved) {
    EXPECT_NEAR(point.x, 998.5, 1e-9);  // every kernel value is exp(-50)
    EXPECT_NEAR(point.y, 999, 1e-9);
  }
}

TEST(RoundedBins, RoundsHalfToEvenAndClamps) {
  EXPECT_EQ(rounded_bins({{0.5, 1.5}, {2.5, 3.4999}, {-7, 1e9}, {998.5, 999.5}}),
            (Bins{0, 2, 2, 3, 0, 999, 998, 999}));
}

TEST(RoundedBins, FailsForACoordinateThatIsNotFinite) {
  EXPECT_EQ(rounded_bins({{1, 2}, {std::nan(""), 2}}), std::nullopt);
  EXPECT_EQ(rounded_bins({{1, std::numeric_limits<double>::infinity()}}), std::nullopt);
  EXPECT_EQ(rounded_bins(transport_points({{0, 0}}, {{std::nan(""), 0}}, {})), std::nullopt);
}

TEST(CheckTargetOptions, NamesTheKeyThatIsOutOfRange) {
  const auto refused = [](const TargetSettings& options, const std::string& key) {
    const UserError error = test::catch_user_error([&] { check_target_options(options); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.problems()[0].where.find(key), std::string::npos);
  };
  refused({.ot_epsilon = 0.0}, "ot_epsilon");
  refused({.ot_epsilon = -1.0}, "ot_epsilon");
  refused({.ot_epsilon = std::nan("")}, "ot_epsilon");
  refused({.ot_iters = 0}, "ot_iters");
  EXPECT_EQ(test::catch_user_error([] { ot_cost_from("L2"); }).kind(), ErrorKind::kConfig);
  EXPECT_EQ(ot_cost_from("l1"), OtCost::kL1);
}

RC_GTEST_PROP(CoordTargets, AreBinsWithinTheGroundTruthsBounds, ()) {
  const auto draw = [](bool is_box) {
    const int num = is_box ? 4 : 2 * pick(3, 8);
    Bins bins;
    for (int i = 0; i < num; ++i) bins.push_back(pick(0, 1000));
    return Geometry{is_box ? GeometryKind::kBbox2d : GeometryKind::kPoly, bins};
  };
  const Geometry predicted = draw(pick(0, 2) == 0), truth = draw(pick(0, 2) == 0);
  const TargetSettings options{.ot_cost = pick(0, 2) == 0 ? OtCost::kL1 : OtCost::kL2,
                               .ot_epsilon = *rc::gen::element(0.01, 1.0, 10.0, 1000.0),
                               .ot_iters = pick(1, 40)};
  const auto targets = coord_targets(predicted, truth, options);
  RC_ASSERT(targets.has_value());
  RC_ASSERT(targets->size() == predicted.bins.size());
  for (size_t i = 0; i < targets->size(); ++i) {
    int low = 999, high = 0;
    for (size_t j = i % 2; j < truth.bins.size(); j += 2) {
      low = std::min(low, truth.bins[j]);
      high = std::max(high, truth.bins[j]);
    }
    RC_ASSERT((*targets)[i] >= low && (*targets)[i] <= high);
  }
}

}  // namespace rematch
