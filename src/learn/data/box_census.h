#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// Finds legal but probably unintended boxes in a data set (BEHAVIOUR 2.8).
class BoxCensus {
 public:
  void add(const Sample& sample);

  /// True if no coordinate exceeds its image's side, in so many scenes that this would be unlikely
  /// for bins.
  bool looks_like_pixels() const;

  /// One text about shapes without area, and one if all coordinates look like pixels, with the
  /// command that converts them; both name lines.
  /// @param path  path of the data set
  std::vector<std::string> warnings(const std::string& path) const;

 private:
  void find_flat_shapes(const Sample& sample);
  void find_pixels(const Sample& sample);

  int64_t num_flat_boxes_ = 0, num_flat_polys_ = 0;
  std::vector<std::string> flat_;  // the first few, "line 3 object 1"
  bool some_bin_exceeds_its_side_ = false;
  double log_chance_ = 0;  // chance that evenly spread bins stay within all image sides
  int64_t num_scenes_ = 0;
  std::string example_;
};

}  // namespace rematch
