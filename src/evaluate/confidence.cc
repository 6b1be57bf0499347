#include "evaluate/confidence.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace rematch {
namespace {

constexpr size_t kCurves = 5, kConfusions = 10, kBins = 10;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

std::vector<PrecisionCurve> precision_curves(const std::vector<RankedClass>& classes, size_t most) {
  PrecisionCurve all{.name = "all classes"};
  std::vector<PrecisionCurve> curves;
  for (const RankedClass& one : classes) {
    if (one.num_truths == 0) continue;
    curves.push_back({one.label, one.num_truths, one.precision});
    all.num_truths += one.num_truths;
    all.precision.resize(one.precision.size());
    for (size_t i = 0; i < one.precision.size(); ++i) all.precision[i] += one.precision[i];
  }
  if (curves.empty()) return {};
  for (double& value : all.precision) value /= static_cast<double>(curves.size());
  std::stable_sort(
      curves.begin(), curves.end(),
      [](const PrecisionCurve& a, const PrecisionCurve& b) { return a.num_truths > b.num_truths; });
  if (curves.size() > most) curves.resize(most);
  curves.insert(curves.begin(), std::move(all));
  return curves;
}

Calibration calibrate(const std::vector<RankedClass>& classes) {
  Calibration calibration{.bins = std::vector<Calibration::Bin>(kBins)};
  int64_t num_predictions = 0;
  for (const RankedClass& one : classes) {
    for (const auto& [score, is_hit] : one.predictions) {
      const double place = std::clamp(score, 0.0, 1.0) * static_cast<double>(kBins);
      Calibration::Bin& bin = calibration.bins[std::min(static_cast<size_t>(place), kBins - 1)];
      ++bin.count;
      ++num_predictions;
      bin.mean_score += score;
      bin.precision += is_hit ? 1 : 0;
    }
  }
  for (Calibration::Bin& bin : calibration.bins) {
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    calibration.error +=
        std::abs(bin.mean_score - bin.precision) / static_cast<double>(num_predictions);
    bin.mean_score /= count;
    bin.precision /= count;
  }
  return calibration;
}

void add_confidence(Json& result, const CocoEvaluator& coco, const Breakdown& breakdown) {
  const std::vector<RankedClass> classes = coco.ranked_classes();
  result["coco_ranking"] = coco.ranks_by_score() ? "score" : "order";
  result["precision_recall"] = Json::array();
  for (const PrecisionCurve& curve : precision_curves(classes, kCurves)) {
    Json precision = Json::array();
    for (const double value : curve.precision) precision.push_back(rounded(value));
    result["precision_recall"].push_back(
        {{"name", curve.name}, {"truths", curve.num_truths}, {"precision", std::move(precision)}});
  }
  result["confusion"] = Json::array();
  for (const Confusion& one : breakdown.confusions(kConfusions)) {
    result["confusion"].push_back({{"truth", one.truth},
                                   {"prediction", one.prediction},
                                   {"count", one.count},
                                   {"placed", one.placed}});
  }
  if (!coco.ranks_by_score()) return;
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
