#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "evaluate/breakdown.h"
#include "evaluate/coco.h"

namespace rematch {

/// Precision over recall at IoU 0.5.
struct PrecisionCurve {
  std::string name;
  int64_t num_truths = 0;
  std::vector<double> precision;  ///< at recall 0, 0.01, …, 1
};

/// The mean over all classes of the truths, then the `most` classes with the most truths.
std::vector<PrecisionCurve> precision_curves(const std::vector<RankedClass>& classes, size_t most);

/// How well scores predict hits at IoU 0.5.
struct Calibration {
  struct Bin {
    int64_t count = 0;
    double mean_score = 0;
    double precision = 0;  ///< share of hits
  };
  std::vector<Bin> bins;  ///< ten of equal width; a score on an edge belongs to the upper one
  double error = 0;  ///< expected: mean over predictions of |mean score − precision| of the bin
};
Calibration calibrate(const std::vector<RankedClass>& classes);

/// Adds what follows from scores of objects to the result of an evaluation: `coco_ranking` ("score"
/// or "order"), `precision_recall`, `confusion` and, with scores, `calibration`.
void add_confidence(Json& result, const CocoEvaluator& coco, const Breakdown& breakdown);

}  // namespace rematch
