#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flow/sample.h"
#include "learn/estep/match/labels.h"

namespace rematch {

/// Numbers of truths and of predictions over an evaluation, by their canonical name.
using NameCounts = std::map<std::string, std::array<int64_t, 2>>;
/// Counts the names of a picture.
void count_names(const Objects& truths, const Objects& predictions, const LabelMatch& labels,
                 NameCounts& counts);

/// One name in place of many: a model that lost the others.
struct NameCollapse {
  std::string name;            ///< canonical
  double predicted_share = 0;  ///< of all predictions
  double truth_share = 0;      ///< of all truths; 0: no truth has the name

  /// "92 % of answered names are \"tobacco product\", which no truth has".
  std::string text() const;
};

constexpr int64_t kFewestPredictions = 20;  ///< fewer show no collapse

/// Finds a name that at least half of all predictions have and that is more than twice as frequent
/// among them as among the truths.
/// @return nullopt also for fewer than kFewestPredictions predictions
std::optional<NameCollapse> find_collapse(const NameCounts& names);

}  // namespace rematch
