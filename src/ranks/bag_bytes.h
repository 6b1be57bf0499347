#pragma once
#include <string>
#include <string_view>

#include "base/metrics.h"

namespace rematch {

/// Observations as bytes for another rank; every double comes back bit for bit, NaN and infinities
/// too.
std::string bytes_of(const MetricsBag& bag);
MetricsBag bag_of(std::string_view bytes);

}  // namespace rematch
