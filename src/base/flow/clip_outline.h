#pragma once
#include <array>
#include <vector>

namespace rematch {

/// A closed outline: its vertices [x, y] in order.
using Outline = std::vector<std::array<double, 2>>;

/// The part of an outline inside a rectangle (Sutherland-Hodgman); empty if it lies outside.
/// Parts of a concave outline stay connected along the edge of the rectangle.
Outline clip_outline(const Outline& outline, const std::array<double, 2>& low,
                     const std::array<double, 2>& high);

/// Area of an outline without crossings.
double outline_area(const Outline& outline);

}  // namespace rematch
