#pragma once
#include <cstddef>

#include "base/flow/sample.h"

/// The one convention of a bin (BEHAVIOUR 19.3). Along a side, bin b is the cell from b/1000 to
/// (b + 1)/1000 and stands for its lower edge, b/1000. Everything that turns places into bins or
/// bins into places, in pixels or in the text of an answer, goes through this file.
namespace rematch {

/// The bin nearest to a place: 1000 · place / side, rounded, halves up, clamped to 0..999.
/// @param place  in the unit of `side`; may lie outside the image.
/// @param side  > 0
int to_bin(double place, double side);

/// The place of a bin, its lower edge: bin · side / 1000.
inline double place_of(int bin, int side) { return bin * side / static_cast<double>(kNumBins); }

/// Smallest axis-aligned box around a geometry, in bins (not clamped).
struct Aabb {
  int64_t min_x = 0;
  int64_t min_y = 0;
  int64_t max_x = 0;
  int64_t max_y = 0;
};

/// Bounding box of all vertices; an inverted bbox_2d is corrected.
Aabb bounding_box(const Geometry& geometry);

/// Scale of coordinates written in plain digits.
struct NumberScale {
  int x = kNumBins, y = kNumBins;  ///< the numbers of the right and the bottom edge
  /// false: thousandths of the sides, 0..1000; true: pixels, x and y are the sides
  bool in_pixels = false;

  /// The number of the far edge.
  /// @param coordinate  index in x, y, x, y, …
  int limit(size_t coordinate) const { return coordinate % 2 == 0 ? x : y; }

  /// The number that stands for a bin. In pixels: its place, rounded, halves up; the last bin is
  /// the far edge. In thousandths: b below the middle and b + 1 from it on, so that all of 0..1000
  /// but 500 is written and both edges of an image can be.
  int number(int bin, size_t coordinate) const;

  /// The bin of a number, the inverse of number() for every bin; in pixels on sides of 1000 and
  /// more.
  /// @param number  0..limit(coordinate)
  int bin(double number, size_t coordinate) const;
};

}  // namespace rematch
