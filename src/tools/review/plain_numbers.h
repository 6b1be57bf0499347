#pragma once
#include <vector>

#include "base/json.h"

namespace rematch {

/// The numbers of a box or outline, flat or in pairs, also as texts of digits; empty if a value is
/// something else.
std::vector<double> read_plain_numbers(const Json& geometry);

}  // namespace rematch
