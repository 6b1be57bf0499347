#include "learn/evaluate/confidence.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rematch {
namespace {

LabelledBox box(const std::string& label, double x, std::optional<double> score = {}) {
  return {label, x, 10, 50, 50, score};
}

const PrecisionCurve& curve_of(const std::vector<PrecisionCurve>& curves, const std::string& name) {
  for (const PrecisionCurve& curve : curves) {
    if (curve.name == name) return curve;
  }
  throw std::out_of_range(name);
}

}  // namespace

TEST(PrecisionCurves, CoverAllClassesAndTheMostFrequentOnes) {
  CocoEvaluator coco;
  coco.add({box("cat", 0), box("cat", 100), box("dog", 200)},
           {box("cat", 0, 0.9), box("cat", 400, 0.8), box("cat", 100, 0.7), box("cow", 0, 0.6)});
  const std::vector<PrecisionCurve> curves = precision_curves(coco.ranked_classes(), 1);
  ASSERT_EQ(curves.size(), 2u) << "all, and one class";
  const PrecisionCurve& cat = curve_of(curves, "cat");
  ASSERT_EQ(cat.precision.size(), 101u);
  EXPECT_DOUBLE_EQ(cat.precision[50], 1);
  EXPECT_NEAR(cat.precision[51], 2.0 / 3, 1e-12);
  EXPECT_NEAR(cat.precision[100], 2.0 / 3, 1e-12);
  const PrecisionCurve& all = curve_of(curves, "all classes");
  EXPECT_EQ(all.num_truths, 3);
  EXPECT_NEAR(all.precision[50], 0.5, 1e-12) << "no dog was found";
}

TEST(Calibrate, ComparesScoresWithHits) {
  CocoEvaluator coco;
  coco.add({box("cat", 0), box("cat", 100)}, {box("cat", 0, 0.85), box("cat", 100, 0.8),
                                              box("cat", 400, 0.81), box("never seen", 0, 1.0)});
  const Calibration calibration = calibrate(coco.ranked_classes());
  ASSERT_EQ(calibration.bins.size(), 1u) << "fewer than twenty predictions";
  EXPECT_EQ(calibration.bins[0].count, 4);
  EXPECT_NEAR(calibration.bins[0].mean_score, 0.865, 1e-12);
  EXPECT_NEAR(calibration.bins[0].precision, 0.5, 1e-12);
  EXPECT_NEAR(calibration.error, 0.365, 1e-12);
}

TEST(Calibrate, LowScoresFillBinsOfAboutAsManyPredictions) {
  RankedClass ranked{.label = "cat", .num_truths = 100};
  for (int i = 0; i < 200; ++i) ranked.predictions.push_back({1e-4 * i, i >= 100});
  const Calibration calibration = calibrate({ranked});
  ASSERT_EQ(calibration.bins.size(), 10u);
  for (const Calibration::Bin& bin : calibration.bins) EXPECT_EQ(bin.count, 20);
  EXPECT_EQ(calibration.bins[4].precision, 0);
  EXPECT_EQ(calibration.bins[5].precision, 1);
  for (auto& [score, is_hit] : ranked.predictions) score = 0.5;
  EXPECT_EQ(calibrate({ranked}).bins.size(), 1u) << "equal scores are in one bin";
  EXPECT_TRUE(calibrate({}).bins.empty());
}

TEST(Confusions, AreTheMostFrequentPairsOfNames) {
  Breakdown breakdown(LabelMatch::from("normalized"));
  const auto object = [](const std::string& desc) {
    return SceneObject{desc, {GeometryKind::kBbox2d, {1, 2, 3, 4}}};
  };
  Matching matching;
  matching.pairs = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
  breakdown.add({object("cat"), object("cat"), object("cat"), object("dog")},
                {object("dog"), object("Dog"), object("cat"), object("cow")}, matching);
  const std::vector<Confusion> all = breakdown.confusions(10);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].truth + "/" + all[0].prediction, "cat/dog");
  EXPECT_EQ(all[0].count, 2);
  EXPECT_EQ(all[0].placed, 3);
  EXPECT_EQ(breakdown.confusions(1).size(), 1u);
}

TEST(AddConfidence, SaysHowAnswersWereRanked) {
  Breakdown breakdown(LabelMatch::from("normalized"));
  CocoEvaluator by_score, by_order;
  by_score.add({box("cat", 0)}, {box("cat", 0, 0.9)});
  by_order.add({box("cat", 0)}, {box("cat", 0)});
  Json scored, ordered;
  add_confidence(scored, by_score, breakdown);
  add_confidence(ordered, by_order, breakdown);
  EXPECT_EQ(scored["coco_ranking"], "score");
  EXPECT_EQ(scored["calibration"]["bins"][0]["count"], 1);
  EXPECT_EQ(scored["precision_recall"][0]["precision"].size(), 101u);
  EXPECT_EQ(ordered["coco_ranking"], "order");
  EXPECT_FALSE(ordered.contains("calibration"));
}

}  // namespace rematch
