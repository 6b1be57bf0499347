#pragma once
#include <string>

#include "tools/review/review.h"

namespace rematch {

/// True if training accepts a file and reads it as it is meant.
bool is_usable(const Review& review);

/// The last lines of `data check` for a file that is not usable: what to fix first, and the command
/// that repairs it, if a trial of the repair keeps records.
std::string check_advice(const Review& review, const std::string& path,
                         const RepairOptions& options);

}  // namespace rematch
