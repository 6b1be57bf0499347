#pragma once
#include <string>

#include "data/dataset.h"

namespace rematch {

/// A warning about classes in several spellings that differ only in case, width or spaces, with
/// their number and examples; "" without. @param val  may be null. Cost: linear in the objects
std::string spelling_warning(const Dataset& train, const Dataset* val);

}  // namespace rematch
