#include "learn/evaluate/confidence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

namespace rematch {
namespace {

constexpr size_t kCurves = 5, kConfusions = 10, kBins = 10;
constexpr size_t kFewest = 10;  // predictions of a bin

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

std::vector<PrecisionCurve> precision_curves(const std::vector<RankedClass>& classes, size_t most) {
  PrecisionCurve all{.name = "all classes"};
  std::vector<PrecisionCurve> curves;
  for (const RankedClass& ranked : classes) {
    if (ranked.num_truths == 0) continue;
    curves.push_back({ranked.label, ranked.num_truths, ranked.precision});
    all.num_truths += ranked.num_truths;
    all.precision.resize(ranked.precision.size());
    for (size_t i = 0; i < ranked.precision.size(); ++i) all.precision[i] += ranked.precision[i];
  }
  if (curves.empty()) return {};
  for (double& value : all.precision) value /= curves.size();
  std::ranges::stable_sort(curves, std::greater{}, &PrecisionCurve::num_truths);
  if (curves.size() > most) curves.resize(most);
  curves.insert(curves.begin(), std::move(all));
  return curves;
}

Calibration calibrate(const std::vector<RankedClass>& classes) {
  std::vector<RankedClass::Prediction> predictions;
  for (const RankedClass& ranked : classes)
    predictions.insert(predictions.end(), ranked.predictions.begin(), ranked.predictions.end());
  std::ranges::sort(predictions, {}, &RankedClass::Prediction::score);
  const size_t total = predictions.size(), num_bins = std::clamp(total / kFewest, size_t{1}, kBins);
  Calibration calibration;
  size_t begin = 0;
  for (size_t k = 1; k <= num_bins && begin < total; ++k) {
    size_t end = std::max(begin + 1, k * total / num_bins);
    while (end < total && predictions[end].score == predictions[end - 1].score) ++end;
    Calibration::Bin bin{.count = static_cast<int64_t>(end - begin)};
    for (size_t i = begin; i < end; ++i) {
      bin.mean_score += predictions[i].score;
      bin.precision += predictions[i].is_hit ? 1 : 0;
    }
    calibration.error += std::abs(bin.mean_score - bin.precision) / total;
    bin.mean_score /= bin.count;
    bin.precision /= bin.count;
    calibration.bins.push_back(bin);
    begin = end;
  }
  return calibration;
}

void add_confidence(Json& result, const CocoEvaluator& coco, const Breakdown& breakdown,
                    const ScoreCalibration* scale) {
  std::vector<RankedClass> classes = coco.ranked_classes();
  result["coco_ranking"] = coco.ranks_by_score() ? "score" : "order";
  result["precision_recall"] = Json::array();
  for (const PrecisionCurve& curve : precision_curves(classes, kCurves)) {
    Json precision = Json::array();
    for (const double value : curve.precision) precision.push_back(rounded(value));
    result["precision_recall"].push_back(
        {{"name", curve.name}, {"truths", curve.num_truths}, {"precision", std::move(precision)}});
  }
  result["confusion"] = Json::array();
  for (const Confusion& confusion : breakdown.confusions(kConfusions)) {
    result["confusion"].push_back({{"truth", confusion.truth},
                                   {"prediction", confusion.prediction},
                                   {"count", confusion.count},
                                   {"placed", confusion.placed}});
  }
  if (!coco.ranks_by_score()) return;
  if (scale != nullptr) {
    for (RankedClass& ranked : classes) {
      for (RankedClass::Prediction& one : ranked.predictions) one.score = (*scale)(one.score);
    }
  }
  const Calibration calibration = calibrate(classes);
  Json bins = Json::array();
  for (const Calibration::Bin& bin : calibration.bins) {
    bins.push_back({{"count", bin.count},
                    {"score", rounded(bin.mean_score)},
                    {"precision", rounded(bin.precision)}});
  }
  result["calibration"] = {{"error", rounded(calibration.error)}, {"bins", std::move(bins)}};
}

}  // namespace rematch
