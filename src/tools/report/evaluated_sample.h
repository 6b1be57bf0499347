#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// An evaluated sample, a line of NAME.samples.jsonl.
struct EvaluatedSample {
  int64_t sample_id = 0;
  std::string image_path;
  Objects truth, predictions;
  std::vector<double> scores;  ///< scores of predictions, or empty
  bool is_calibrated = false;  ///< a score is the share of such predictions that are right
  std::vector<std::pair<int, int>> pairs;  ///< (prediction, truth)
  std::vector<bool> named_right;           ///< for each pair: labels are equal
  std::string status;

  /// 2 · pairs named right / (truths + predictions); 1 for an empty scene with an empty answer.
  double f1_labels() const;
};

/// @throws UserError (data) when a line is damaged, (environment) when the file cannot be read
std::vector<EvaluatedSample> read_evaluated_samples(const std::string& path);

/// Finds the sample of the same image, for example in another evaluation; null when absent.
const EvaluatedSample* find_same_image(const std::vector<EvaluatedSample>& samples,
                                       const EvaluatedSample& like);

/// At most `count` indices below `total`, evenly spaced.
std::vector<size_t> evenly_spaced_indices(size_t total, int count);

}  // namespace rematch
