#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// Looks over the boxes of a data set for what is legal and probably not meant (BEHAVIOUR 2.8).
class BoxCensus {
 public:
  void add(const Sample& sample);

  /// True when no coordinate exceeds its image's side, in so many scenes that bins would hardly all
  /// do so.
  bool looks_like_pixels() const;

  /// A text for boxes without area, and one when all coordinates look like pixels; each names
  /// lines, the second also the command that converts. @param path  of the data set
  std::vector<std::string> warnings(const std::string& path) const;

 private:
  void look_for_area(const Sample& sample);
  void look_for_pixels(const Sample& sample);

  int64_t num_flat_boxes_ = 0, num_flat_polys_ = 0;
  std::vector<std::string> flat_;  // the first few, "line 3 object 1"
  bool some_bin_exceeds_its_side_ = false;
  double log_chance_ = 0;  // that bins spread evenly would all stay within their image's sides
  int64_t num_scenes_ = 0;
  std::string example_;
};

}  // namespace rematch
