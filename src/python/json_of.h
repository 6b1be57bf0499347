#pragma once
#include <nanobind/nanobind.h>

#include "base/json.h"

namespace rematch {

/// A Python value of None, bool, int, float, str, list, tuple and dict (keys are text) as JSON.
/// What answers `tolist()` (arrays, tensors) is taken as that list.
/// @param place  of the value, for errors
/// @throws UserError (data) naming the place, for another type, an integer beyond 64 bits, or
/// nesting beyond 512. Needs the GIL.
Json json_of(nanobind::handle value, const std::string& place);

/// JSON as plain Python values. Needs the GIL.
nanobind::object python_of(const Json& value);

}  // namespace rematch
