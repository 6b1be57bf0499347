#pragma once
#include <map>
#include <string>

#include "base/metrics.h"

namespace rematch {

/// Time of a run's steps by activity.
class TimeSplit {
 public:
  /// Adds the times of a step.
  void add(const MetricsBag& step);
  /// Shares of a run in the order of a step: "rollouts 61 %, forward 12 %, …"; empty without steps.
  /// @param total_s  the whole run; time outside steps is evaluation and saving
  std::string text(double total_s) const;
  /// Duration of all steps, in seconds.
  double steps_s() const { return steps_s_; }

 private:
  std::map<std::string, double> seconds_;  ///< by displayed name
  double steps_s_ = 0;
};

}  // namespace rematch
