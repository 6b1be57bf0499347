#pragma once
#include <string>

#include "base/json.h"
#include "tools/import/class_names.h"
#include "tools/import/foreign.h"

namespace rematch {

/// Reads a record of one image: its name, under one of the usual keys, and `objects`, a list of
/// objects or an object of lists, with boxes, outlines and names under the usual keys.
/// @param form  of four numbers
/// @throws LeftOut for a record without an image or objects
ForeignImage read_object_record(const Json& record, const std::string& path,
                                const std::string& where, BoxForm form, const NamesById& names,
                                const ImportOptions& options, Ledger& ledger);

}  // namespace rematch
