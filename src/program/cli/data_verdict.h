#pragma once
#include <string>

#include "tools/review/review.h"

namespace rematch {

/// The reason why training refuses the file, or would read it wrongly; "" for a usable one.
std::string find_trouble(const Review& review);

/// The command that repairs a file, by a trial in memory, or the reason against it.
std::string repair_advice(const Review& review, const std::string& path, RepairOptions options);

}  // namespace rematch
