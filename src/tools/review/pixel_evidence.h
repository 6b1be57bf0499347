#pragma once
#include <vector>

#include "base/json.h"
#include "learn/data/box_census.h"

namespace rematch {

/// A number in a box or outline.
struct Coordinate {
  Json* value = nullptr;
  double side = 0;  ///< length of the image along the number's axis
};

/// Collects the numbers of all geometries in a record, flat or paired; x and y alternate.
/// @param record  must have `objects`, `width` and `height`
std::vector<Coordinate> collect_coordinates(Json& record);

/// Evidence in the numbers of a record for their unit.
struct NumberFacts {
  bool cannot_be_bins = false;  ///< a number is a fraction or exceeds 1000
  bool exceed_bins = false;     ///< a number is outside 0 … 1000
  bool leave_image = false;     ///< a number is clearly outside 0 … side: not pixels
  bool are_small = false;       ///< there are numbers, and none exceeds 1.5: maybe normalized

  bool are_normalized() const { return cannot_be_bins && are_small; }
  bool are_pixels() const { return cannot_be_bins && !leave_image && !are_small; }
};

/// Finds the evidence in a record.
/// @param record  as for collect_coordinates()
NumberFacts find_number_facts(Json& record);

/// Decides the unit of the numbers in a file. Pixels: the numbers of some record must be pixels and
/// those of none cannot be, or BoxCensus suspects it. Normalized: the numbers of some record must
/// be; records with only 0 and 1 are then normalized too.
class PixelEvidence {
 public:
  void add(Json& record);
  bool is_pixels() const {
    return !some_leave_image_ && (some_are_pixels_ || census_.looks_like_pixels());
  }
  bool has_normalized() const { return has_normalized_; }
  /// True for bins with fractions: some record has fractions, none has a number outside 0 … 1000.
  bool has_fractional_bins() const { return has_fractions_ && !some_exceed_bins_ && !is_pixels(); }

 private:
  BoxCensus census_;
  bool some_are_pixels_ = false, some_leave_image_ = false, has_normalized_ = false;
  bool has_fractions_ = false, some_exceed_bins_ = false;
};

}  // namespace rematch
