#pragma once
#include <map>
#include <string>

#include "base/metrics.h"

namespace rematch {

/// Where the time of a run's steps went.
class TimeSplit {
 public:
  /// Adds the times of a step.
  void add(const MetricsBag& step);
  /// Shares of a run, largest parts of a step in its order: "rollouts 61 %, forward 12 %, …"; empty
  /// without steps.
  /// @param total_s  the whole run; what is in no step is evaluation and saving
  std::string text(double total_s) const;

 private:
  std::map<std::string, double> seconds_;  ///< by words for people
  double steps_s_ = 0;
};

}  // namespace rematch
