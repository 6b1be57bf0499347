#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "learn/evaluate/breakdown.h"
#include "learn/evaluate/coco.h"
#include "learn/evaluate/score_calibration.h"

namespace rematch {

/// Precision over recall at IoU 0.5.
struct PrecisionCurve {
  std::string name;
  int64_t num_truths = 0;
  std::vector<double> precision;  ///< at recall 0, 0.01, …, 1
};

/// The curve of all classes (mean), then those of the `most` classes with the most truths.
std::vector<PrecisionCurve> precision_curves(const std::vector<RankedClass>& classes, size_t most);

/// Agreement of scores with the share of hits at IoU 0.5.
struct Calibration {
  struct Bin {
    int64_t count = 0;
    double mean_score = 0;
    double precision = 0;  ///< share of hits
  };
  /// at most ten of about as many predictions each, at least ten; equal scores are in one
  std::vector<Bin> bins;
  double error =
      0;  ///< expected calibration error: mean over predictions of |mean score − precision|
};
Calibration calibrate(const std::vector<RankedClass>& classes);

/// Adds to the result of an evaluation: `coco_ranking` ("score" or "order"), `precision_recall`,
/// `confusion` and, with scores, `calibration`.
/// @param scale  of the scores in `calibration`; null = as they are
void add_confidence(Json& result, const CocoEvaluator& coco, const Breakdown& breakdown,
                    const ScoreCalibration* scale = nullptr);

}  // namespace rematch
