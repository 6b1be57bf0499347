#pragma once
#include "base/json.h"
#include "tools/review/review.h"

namespace rematch {

/// Renames the image's field of a record to "images", and makes one path a list.
void rename_image(Json& record, Repairs& repairs);

/// Renames the fields of an object to "desc" and "bbox_2d", and writes its numbers plainly: without
/// quotes, four of them for a box of two pairs.
void rename_object_fields(Json& object, Repairs& repairs);

/// Adds a number to a list, a whole one as an integer.
void add_number(Json& list, double number);

}  // namespace rematch
