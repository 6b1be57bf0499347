#include "learn/estep/match/matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <set>

#include "base/error.h"
#include "learn/estep/match/maskiou.h"
#include "support/capture.h"

namespace rematch {
namespace {

Geometry box_of(int x1, int y1, int x2, int y2) {
  return {GeometryKind::kBbox2d, {x1, y1, x2, y2}};
}
using Pairs = std::vector<std::pair<int, int>>;

// Uniform, unlike rapidcheck's own ranges, which start small.
int draw(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

rc::Gen<Geometry> any_geometry() {
  return rc::gen::exec([] {
    const bool is_box = *rc::gen::arbitrary<bool>();
    const int spread = *rc::gen::element(3, 20, 300);
    const int x0 = draw(0, 400 - spread), y0 = draw(0, 400 - spread);
    Geometry geometry{is_box ? GeometryKind::kBbox2d : GeometryKind::kPoly, {}};
    const int num = is_box ? 2 : draw(3, 7);
    for (int i = 0; i < num; ++i) {
      geometry.bins.push_back(x0 + draw(0, spread));
      geometry.bins.push_back(y0 + draw(0, spread));
    }
    return geometry;
  });
}

std::vector<Geometry> some_geometries(int limit) {
  return *rc::gen::container<std::vector<Geometry>>(static_cast<size_t>(draw(0, limit)),
                                                    any_geometry());
}

}  // namespace

TEST(CandidatesOf, AreSortedByOverlapThenIndex) {
  const std::vector<Geometry> truth = {box_of(0, 0, 10, 10), box_of(0, 0, 100, 100),
                                       box_of(500, 500, 600, 600), box_of(0, 0, 100, 100)};
  EXPECT_EQ(find_candidates(box_of(0, 0, 100, 100), truth, 10), (std::vector<int>{1, 3, 0, 2}));
  EXPECT_EQ(find_candidates(box_of(0, 0, 100, 100), truth, 2), (std::vector<int>{1, 3}));
}

TEST(CandidatesOf, FallBackToTheNearestCentresWhenNoBoxTouches) {
  const std::vector<Geometry> truth = {box_of(900, 900, 910, 910), box_of(30, 0, 40, 10),
                                       box_of(0, 30, 10, 40), box_of(20, 20, 24, 24)};
  EXPECT_EQ(find_candidates(box_of(0, 0, 10, 10), truth, 10), (std::vector<int>{3, 1, 2, 0}));
}

TEST(CandidatesOf, TreatTouchingAndFlatBoxesAsWithoutOverlap) {
  // Continuous areas, no +1: a shared edge and a box without width overlap nothing.
  EXPECT_EQ(find_candidates(box_of(0, 0, 10, 10), {box_of(10, 0, 500, 10), box_of(5, 5, 5, 5)}, 1),
            (std::vector<int>{1}));
}

TEST(Match, PairsEachPredictionWithItsObject) {
  const Matching matching =
      match({box_of(500, 500, 600, 600), box_of(0, 0, 100, 100)},
            {box_of(0, 0, 100, 100), box_of(500, 500, 600, 600), box_of(800, 0, 900, 50)}, {});
  EXPECT_EQ(matching.pairs, (Pairs{{0, 1}, {1, 0}}));
  EXPECT_TRUE(matching.false_positives.empty());
  EXPECT_EQ(matching.false_negatives, (std::vector<int>{2}));
  EXPECT_EQ(matching.gating_rejections, 4);
  EXPECT_DOUBLE_EQ(matching.matched_maskiou_sum, 2.0);
}

TEST(Match, HasNoPairsWhenOneSideIsEmpty) {
  EXPECT_EQ(match({}, {box_of(0, 0, 9, 9)}, {}).false_negatives, (std::vector<int>{0}));
  const Matching matching = match({box_of(0, 0, 9, 9)}, {}, {});
  EXPECT_EQ(matching.false_positives, (std::vector<int>{0}));
  EXPECT_TRUE(matching.pairs.empty());
  EXPECT_EQ(matching.gating_rejections, 0);
}

TEST(Match, CountsRejectionsAmongCandidatesOnly) {
  const std::vector<Geometry> truth = {box_of(0, 0, 10, 10), box_of(100, 0, 110, 10),
                                       box_of(200, 0, 210, 10)};
  MatchSettings options;
  options.candidate_top_k = 2;
  EXPECT_EQ(match({box_of(900, 900, 999, 999)}, truth, options).gating_rejections, 2);
}

TEST(Match, KeepsACandidateExactlyAtTheGate) {
  MatchSettings options;
  options.maskiou_gate = 13.0 / 38.0;
  EXPECT_EQ(match({box_of(100, 100, 200, 200)}, {box_of(150, 100, 250, 200)}, options).pairs.size(),
            1u);
  options.maskiou_gate = std::nextafter(13.0 / 38.0, 1.0);
  EXPECT_EQ(
      match({box_of(100, 100, 200, 200)}, {box_of(150, 100, 250, 200)}, options).gating_rejections,
      1);
}

TEST(Match, PairsDisjointObjectsWhenTheGateIsZero) {
  MatchSettings options;
  options.maskiou_gate = 0.0;
  EXPECT_EQ(match({box_of(0, 0, 9, 9)}, {box_of(900, 900, 999, 999)}, options).pairs.size(), 1u);
}

TEST(Match, LeavesAPairUnmatchedWhenThatIsCheaper) {
  MatchSettings options;
  options.fp_cost = 0.1;
  options.fn_cost = 0.1;
  const Matching matching =
      match({box_of(100, 100, 200, 200)}, {box_of(150, 100, 250, 200)}, options);
  EXPECT_TRUE(matching.pairs.empty());
  EXPECT_EQ(matching.gating_rejections, 0);
}

TEST(Match, InfeasiblePairsStayUnmatchedAtAnyCost) {
  MatchSettings options;
  options.fp_cost = 1e7;
  options.fn_cost = 1e7;
  const Matching matching = match({box_of(0, 0, 9, 9)}, {box_of(900, 900, 999, 999)}, options);
  EXPECT_TRUE(matching.pairs.empty());
  EXPECT_EQ(matching.false_positives.size(), 1u);
  EXPECT_EQ(matching.false_negatives.size(), 1u);
}

TEST(Match, RefusesOptionsOutOfRange) {
  const auto refused = [](const MatchSettings& options, const std::string& key) {
    const UserError error = test::catch_user_error([&] { match({}, {}, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.problems()[0].where.find(key), std::string::npos);
  };
  refused({.candidate_top_k = 0}, "candidate_top_k");
  refused({.maskiou_gate = 1.5}, "maskiou_gate");
  refused({.maskiou_gate = std::nan("")}, "maskiou_gate");
  refused({.maskiou_resolution = 0}, "maskiou_resolution");
  refused({.fp_cost = -1}, "fp_cost");
  refused({.fn_cost = -1}, "fn_cost");
}

// Its square matrix took gigabytes and minutes.
TEST(Match, HandlesAnAnswerOfTwentyThousandObjects) {
  std::vector<Geometry> predictions, truth;
  for (int i = 0; i < 20000; ++i) {
    const int x = i % 97 * 10, y = i % 89 * 10;
    predictions.push_back(box_of(x, y, x + 4, y + 4));
  }
  for (int i = 0; i < 20; ++i) truth.push_back(box_of(i * 40, 10, i * 40 + 30, 60));
  for (const int p : {7, 4242, 19999})
    predictions[static_cast<size_t>(p)] = truth[static_cast<size_t>(p % 20)];
  const auto start = std::chrono::steady_clock::now();
  const Matching found = match(predictions, truth, {});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(found.pairs, (Pairs{{7, 7}, {4242, 2}, {19999, 19}}));
  EXPECT_EQ(found.false_positives.size(), predictions.size() - 3);
  EXPECT_EQ(found.false_negatives.size(), truth.size() - 3);
}

TEST(Match, HandlesHundredsOfObjects) {
  std::vector<Geometry> predictions, truth;
  for (int i = 0; i < 300; ++i) {
    const int x = (i * 37) % 900, y = (i * 91) % 900;
    predictions.push_back(box_of(x, y, x + 60, y + 60));
    truth.push_back(box_of(x + 3, y, x + 63, y + 60));
  }
  const Matching matching = match(predictions, truth, {});
  EXPECT_EQ(matching.pairs.size(), 300u);
}

RC_GTEST_PROP(Match, SplitsBothListsIntoPairsAndTheRest, ()) {
  const auto predictions = some_geometries(8), truth = some_geometries(8);
  MatchSettings options{.candidate_top_k = draw(1, 5),
                        .maskiou_gate = *rc::gen::element(0.0, 0.3),
                        .maskiou_resolution = 64};
  const Matching matching = match(predictions, truth, options);
  std::set<int> p_seen(matching.false_positives.begin(), matching.false_positives.end());
  std::set<int> g_seen(matching.false_negatives.begin(), matching.false_negatives.end());
  for (const auto& [p, g] : matching.pairs) {
    RC_ASSERT(p_seen.insert(p).second);
    RC_ASSERT(g_seen.insert(g).second);
  }
  RC_ASSERT(p_seen.size() == predictions.size() && g_seen.size() == truth.size());
  RC_ASSERT(std::is_sorted(matching.pairs.begin(), matching.pairs.end()));
  RC_ASSERT(matching.gating_rejections <=
            static_cast<int>(predictions.size()) * options.candidate_top_k);
}

RC_GTEST_PROP(Match, PaysTheLeastTotalCost, ()) {
  const auto predictions = some_geometries(5), truth = some_geometries(6);
  const MatchSettings options{.maskiou_gate = *rc::gen::element(0.0, 0.1),
                              .maskiou_resolution = 32,
                              .fp_cost = *rc::gen::element(0.2, 1.0),
                              .fn_cost = *rc::gen::element(0.2, 1.0)};
  const size_t num_p = predictions.size(), num_g = truth.size();
  const auto pair_cost = [&](size_t p, size_t g) {
    const double iou =
        mask_iou(predictions[p], rasterize(predictions[p], 32), truth[g], rasterize(truth[g], 32));
    return iou < options.maskiou_gate ? 1e6 : 1.0 - iou;
  };
  // Every way to give each prediction a ground truth or none.
  double best = 1e18;
  std::vector<int> choice(num_p, -1);
  const std::function<void(size_t, double, size_t)> visit = [&](size_t p, double cost,
                                                                size_t used) {
    if (p == num_p) {
      best = std::min(best, cost + options.fn_cost * static_cast<double>(num_g - used));
      return;
    }
    visit(p + 1, cost + options.fp_cost, used);
    for (size_t g = 0; g < num_g; ++g) {
      if (std::count(choice.begin(), choice.begin() + static_cast<std::ptrdiff_t>(p),
                     static_cast<int>(g)) > 0)
        continue;
      choice[p] = static_cast<int>(g);
      visit(p + 1, cost + pair_cost(p, g), used + 1);
      choice[p] = -1;
    }
  };
  visit(0, 0.0, 0);
  const Matching matching = match(predictions, truth, options);
  double paid = options.fp_cost * static_cast<double>(matching.false_positives.size()) +
                options.fn_cost * static_cast<double>(matching.false_negatives.size());
  for (const auto& [p, g] : matching.pairs)
    paid += pair_cost(static_cast<size_t>(p), static_cast<size_t>(g));
  RC_ASSERT(std::abs(paid - best) < 1e-9);
}

}  // namespace rematch
