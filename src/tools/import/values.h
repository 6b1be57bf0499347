#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/flow/clip_outline.h"
#include "base/json.h"

// Looks at members, numbers and points of JSON that may have any shape.
namespace rematch {

/// The first of several members that is there and not null; null without one, or if the value is
/// not an object.
const Json& member(const Json& value, std::initializer_list<const char*> keys);
/// Its text; "" for another value.
std::string text_member(const Json& value, std::initializer_list<const char*> keys);

/// An id as text: a whole number or a text; nullopt for other values.
std::optional<std::string> read_id(const Json& value);

/// The path of an image: a text, or a member of an object; "data:image/" for its bytes.
std::string image_path_of(const Json& value);

/// The corners of the smallest box around points.
/// @param points  at least one
std::array<double, 4> extent_of(const Outline& points);

/// A finite number, also as text ("12.5"); nullopt for other values.
std::optional<double> read_number(const Json& value);
/// The same of a text without blanks around it.
std::optional<double> parse_number(std::string_view text);

/// Every two of an even number of values are a point; empty for an odd one.
Outline pair_up(const std::vector<double>& values);

/// Points, flat (x, y, x, y, …) or in pairs; empty for other values.
Outline read_points(const Json& value);

/// The points of a text; all but numbers separates them. Empty for an odd number of numbers.
Outline read_written_points(std::string_view text);

}  // namespace rematch
