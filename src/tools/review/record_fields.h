#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "learn/data/units.h"

namespace rematch {

/// Changed or left out parts: description and count.
using Changes = std::map<std::string, int64_t>;

/// Renames fields that other programs write (`label`, `bbox`, `image`, …), makes one path a list,
/// and writes numbers plainly: without quotes, four of them for a box of two pairs.
void tidy_fields(Json& record, Changes& changes);

/// The coordinates of each box and outline, x and y in turn, flat or in pairs.
std::vector<std::vector<Json*>> find_coordinates(Json& record);

/// The numbers of the boxes and outlines that hold nothing else.
std::vector<Numbers> find_numbers(Json& record);

/// The number as JSON, a whole one as an integer.
Json plain_number(double number);

}  // namespace rematch
