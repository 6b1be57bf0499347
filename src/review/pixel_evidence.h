#pragma once
#include <vector>

#include "base/json.h"
#include "data/box_census.h"

namespace rematch {

/// A number of a box or outline.
struct Coordinate {
  Json* value = nullptr;
  double side = 0;  ///< of the image, along the number's axis
};

/// The numbers of all geometries of a record, flat or paired; x and y alternate. @param record with
/// `objects`, and the sides of its image
std::vector<Coordinate> coordinates_of(Json& record);

/// Hints in the numbers of a record about their unit.
struct NumberFacts {
  bool cannot_be_bins = false;  ///< a fraction, or more than 1000
  bool leave_image = false;     ///< beyond 0 … side by more than rounding explains: no pixels
  bool are_shares = false;      ///< none exceeds 1

  bool are_pixels() const { return cannot_be_bins && !leave_image && !are_shares; }
};

/// @param record  as coordinates_of()
NumberFacts facts_of(Json& record);

/// Decides if the numbers of a whole file are pixels: some record's must be and none's cannot, or
/// BoxCensus suspects it.
class PixelEvidence {
 public:
  void add(Json& record);
  bool is_pixels() const {
    return !some_leave_image_ && (some_are_pixels_ || census_.looks_like_pixels());
  }

 private:
  BoxCensus census_;
  bool some_are_pixels_ = false, some_leave_image_ = false;
};

}  // namespace rematch
