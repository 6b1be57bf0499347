#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/flow/clip_outline.h"
#include "base/json.h"

// The reader of numbers and points that all importers share.
namespace rematch {

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
