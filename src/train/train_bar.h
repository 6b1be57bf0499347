#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "base/metrics.h"
#include "observe/progress.h"
#include "observe/sinks.h"

namespace rematch {

/// The progress bar of a training, with the same fields in every step. A score that a step did not
/// measure keeps its last value.
class TrainBar {
 public:
  /// @param rolls_out  show the scores of rollouts. @param memory_name  "RAM" or "GPU"
  TrainBar(bool rolls_out, std::string memory_name)
      : rolls_out_(rolls_out), memory_name_(std::move(memory_name)) {}

  /// @param values  metrics of the step. @param tokens_per_s  0 = not measured
  Progress state(int64_t step, int64_t num_steps, const MetricValues& values, double tokens_per_s,
                 int64_t memory_bytes);

 private:
  bool rolls_out_;
  std::string memory_name_;
  std::map<std::string, double> last_;
};

/// A number in at most five columns: "4.33", "0.012", "12345", "1e-05".
std::string short_number(double value);
/// A share in three columns: ".40", "1.0".
std::string short_share(double value);

}  // namespace rematch
