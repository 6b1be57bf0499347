#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// An evaluated sample, as NAME.samples.jsonl has it.
struct JudgedSample {
  int64_t sample_id = 0;
  std::string image_path;
  std::vector<SceneObject> truth, predictions;
  std::vector<double> scores;              ///< of predictions; empty = none
  std::vector<std::pair<int, int>> pairs;  ///< (prediction, truth)
  std::vector<bool> named_right;           ///< of each pair
  std::string status;

  /// 2 · pairs named right / (truths + predictions); 1 for an empty scene that was answered as
  /// empty.
  double f1_labels() const;
};

/// @throws UserError (data) when a line is damaged, (environment) when the file cannot be read
std::vector<JudgedSample> read_judged_samples(const std::string& path);

/// The sample of the same image, such as that of another evaluation; null when there is none.
const JudgedSample* find_same_image(const std::vector<JudgedSample>& samples,
                                    const JudgedSample& like);

/// At most `count` indices below `total`, evenly spaced.
std::vector<size_t> evenly_spaced(size_t total, int count);

}  // namespace rematch
