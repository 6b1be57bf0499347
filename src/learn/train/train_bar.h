#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "base/metrics.h"
#include "base/observe/progress.h"
#include "base/observe/sinks.h"

namespace rematch {

/// The progress bar of a training, with the same fields in every step. A score that a step did not
/// measure keeps its last value.
class TrainBar {
 public:
  /// @param rolls_out  show the scores of rollouts.
  /// @param memory_name  "RAM" or "GPU"
  /// @param gate  `maskiou_gate`, part of the names of the scores
  TrainBar(bool rolls_out, std::string memory_name, double gate);

  /// @param values  metrics of the step.
  /// @param tokens_per_s  0 = not measured
  Progress state(int64_t step, int64_t num_steps, const MetricValues& values, double tokens_per_s,
                 int64_t memory_bytes);

 private:
  bool rolls_out_;
  std::string memory_name_, f1_name_;
  std::map<std::string, double> last_;
};

/// A number in at most five columns: "4.33", "0.012", "12345", "1e-05".
std::string short_number(double value);
/// A learning rate in one form with two digits: "1.0e-05".
std::string short_rate(double value);
/// A share in three columns: ".40", "1.0".
std::string short_share(double value);

}  // namespace rematch
