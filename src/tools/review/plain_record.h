#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "learn/data/units.h"
#include "tools/import/foreign.h"

namespace rematch {

/// Reads a record as importers read foreign ones: its fields may have the names of other programs
/// (`label`, `bbox`, `image`, …), its numbers may be texts. Boxes keep their numbers, as if these
/// were corners; members that training ignores are kept, but for those of objects.
/// @throws LeftOut
ForeignImage read_plain_record(Json record, const std::string& path, const std::string& where);

/// The numbers of the boxes and outlines of an image.
std::vector<Numbers> numbers_of(const ForeignImage& image);

}  // namespace rematch
