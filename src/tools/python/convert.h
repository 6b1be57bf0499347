#pragma once
#include <nanobind/nanobind.h>

#include "base/json.h"

namespace rematch {

/// Converts a Python value to JSON: None, bool, int, float, str, list, tuple and dict (with str
/// keys), and objects with `tolist()` (arrays, tensors).
/// @param place  name of the value, for errors
/// @throws UserError (data) for another type, an integer beyond 64 bits, or nesting beyond 512
/// Needs the GIL.
Json to_json(nanobind::handle value, const std::string& place);

/// Converts JSON to plain Python values. Needs the GIL.
nanobind::object to_python(const Json& value);

}  // namespace rematch
