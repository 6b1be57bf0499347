#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/flow/box_form.h"
#include "base/flow/clip_outline.h"
#include "base/json.h"
#include "tools/import/foreign.h"

// The reader of geometry that all importers share.
namespace rematch {

/// The object with the smallest box around points.
/// @param points  at least one
ForeignObject box_around(const Outline& points);

/// The object of a box.
/// @param numbers  in the order of `form`
ForeignObject make_box(const std::array<double, 4>& numbers, BoxForm form);

/// Makes an outline out of points: with `keep_ring` the outline itself, else only its box, counted.
/// @param points  at least three.
ForeignObject make_outline(const Outline& points, bool keep_ring, Ledger& ledger);

/// Makes the object of the points of an answer: two are the corners of a box (unless
/// `options.boxes` says otherwise), four or more an outline.
/// @return the reason why there is none, or nullptr
const char* make_shape(const Outline& points, const ImportOptions& options, ForeignObject& object,
                       Ledger& ledger);

/// A finite number, also as text ("12.5"); nullopt for other values.
std::optional<double> read_number(const Json& value);
/// The same of a text without blanks around it.
std::optional<double> parse_number(std::string_view text);

/// Every two of an even number of values are a point; empty for an odd one.
Outline pair_up(const std::vector<double>& values);

/// Four numbers, flat or in two pairs; nullopt for other values.
std::optional<std::array<double, 4>> read_four(const Json& value);

/// Points, flat (x, y, x, y, …) or in pairs; empty for other values.
Outline read_points(const Json& value);

}  // namespace rematch
