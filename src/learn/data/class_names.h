#pragma once
#include <string>

#include "learn/data/dataset.h"

namespace rematch {

/// Returns a warning with the number and examples of classes whose spellings differ only in case,
/// width or spaces; "" if there are none. Cost: linear in the number of objects.
/// @param val  may be null
std::string spelling_warning(const Dataset& train, const Dataset* val);

}  // namespace rematch
