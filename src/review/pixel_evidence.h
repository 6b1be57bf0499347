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
  bool are_small = false;       ///< there are some, and none exceeds 1.5: shares of the sides?

  bool are_shares() const { return cannot_be_bins && are_small; }
  bool are_pixels() const { return cannot_be_bins && !leave_image && !are_small; }
};

/// @param record  as coordinates_of()
NumberFacts facts_of(Json& record);

/// Decides what the numbers of a whole file are. Pixels: some record's must be and none's cannot,
/// or BoxCensus suspects it. Shares of the sides: some record's must be; its boxes of 0 and 1 alone
/// are no bins then, but whole sides.
class PixelEvidence {
 public:
  void add(Json& record);
  bool is_pixels() const {
    return !some_leave_image_ && (some_are_pixels_ || census_.looks_like_pixels());
  }
  bool has_shares() const { return has_shares_; }

 private:
  BoxCensus census_;
  bool some_are_pixels_ = false, some_leave_image_ = false, has_shares_ = false;
};

}  // namespace rematch
