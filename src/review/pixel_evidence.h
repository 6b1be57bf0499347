#pragma once
#include <vector>

#include "base/json.h"
#include "data/box_census.h"

namespace rematch {

/// The box or outline of a record's object, or null.
Json* geometry_of(Json& object);

/// The values of a geometry, flat or in pairs: x and y by turns.
std::vector<Json*> values_of(Json& geometry);

/// What the numbers of a record say about their unit.
struct NumberFacts {
  bool cannot_be_bins = false;  ///< a fraction, or more than 1000
  bool leave_image = false;     ///< beyond 0 … side by more than rounding explains: no pixels
  bool are_shares = false;      ///< none exceeds 1

  bool are_pixels() const { return cannot_be_bins && !leave_image && !are_shares; }
};

/// @param record  with `objects`, and the sides of its image
NumberFacts facts_of(Json& record);

/// Whether the numbers of a whole file are pixels: some record's must be and none's cannot, or
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
