#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "learn/data/dataset.h"

namespace rematch {

/// Warnings of names: classes whose spellings differ only in case, width or spaces; names that are
/// all numbers.
/// @param counts  objects by name
Strings class_name_warnings(const std::map<std::string, int64_t>& counts);

/// The same of the names of both files. Cost: linear in the number of objects.
/// @param val  may be null
Strings class_name_warnings(const Dataset& train, const Dataset* val);

}  // namespace rematch
