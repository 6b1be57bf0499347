#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// The chance that numbers of 0 … 1000, spread evenly, all stay within the sides of their images.
/// Eight scenes of 640 x 480 make it so small that the numbers are probably pixels.
class PixelChance {
 public:
  /// @param right, bottom  the largest numbers of one image; others of it are not independent
  void add(double right, double bottom, int width_px, int height_px);
  bool is_small() const;

 private:
  bool some_leave_ = false;
  double log_chance_ = 0;
};

/// Finds legal but probably unintended boxes in a data set (BEHAVIOUR 2.8).
class BoxCensus {
 public:
  void add(const Sample& sample);

  /// True if no coordinate exceeds its image's side, in so many scenes that this would be unlikely
  /// for bins.
  bool looks_like_pixels() const { return chance_.is_small(); }

  /// One text about shapes without area, and one if all coordinates look like pixels, with the
  /// command that converts them; both name lines.
  /// @param path  path of the data set
  std::vector<std::string> warnings(const std::string& path) const;

 private:
  void find_flat_shapes(const Sample& sample);
  void find_pixels(const Sample& sample);

  int64_t num_flat_boxes_ = 0, num_flat_polys_ = 0;
  std::vector<std::string> flat_;  // the first few, "line 3 object 1"
  PixelChance chance_;
  int64_t num_scenes_ = 0;
  std::string example_;
};

}  // namespace rematch
