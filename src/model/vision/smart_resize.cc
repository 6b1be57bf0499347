#include "model/vision/smart_resize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rematch {
namespace {

constexpr double kMaxAspectRatio = 200.0;
constexpr double kMaxPixels = 1 << 26;  // four times what any model is configured for

// Python's round(a / b) · b for positive integers: a tie goes to the even multiple.
int64_t round_to_multiple(int64_t side_px, int64_t multiple) {
  const int64_t quotient = side_px / multiple;
  const int64_t twice_rest = 2 * (side_px % multiple);
  const bool up = twice_rest > multiple || (twice_rest == multiple && quotient % 2 == 1);
  return (quotient + (up ? 1 : 0)) * multiple;
}

}  // namespace

ImageSize smart_resize(ImageSize size, const ResizeLimits& limits, const std::string& where) {
  const int64_t height = size.height_px, width = size.width_px, factor = limits.side_multiple_px;
  REMATCH_CHECK(height > 0 && width > 0 && factor > 0,
                fmt::format("{}x{}, factor {}", width, height, factor));
  const double ratio =
      static_cast<double>(std::max(height, width)) / static_cast<double>(std::min(height, width));
  if (ratio > kMaxAspectRatio) {
    throw data_error({.error = "an image is too long and thin to be resized",
                      .where = where,
                      .what = fmt::format("{} x {} px (width x height), ratio {:.1f}, at most 200",
                                          width, height, ratio),
                      .fix = "crop or pad the image"});
  }
  // The same operations on doubles as in Python: floor and ceil make the last bit matter.
  const double area = static_cast<double>(height * width), multiple = static_cast<double>(factor);
  double new_height = static_cast<double>(round_to_multiple(height, factor));
  double new_width = static_cast<double>(round_to_multiple(width, factor));
  if (new_height * new_width > static_cast<double>(limits.max_pixels)) {
    const double beta = std::sqrt(area / static_cast<double>(limits.max_pixels));
    new_height =
        std::max(multiple, std::floor(static_cast<double>(height) / beta / multiple) * multiple);
    new_width =
        std::max(multiple, std::floor(static_cast<double>(width) / beta / multiple) * multiple);
  } else if (new_height * new_width < static_cast<double>(limits.min_pixels)) {
    const double beta = std::sqrt(static_cast<double>(limits.min_pixels) / area);
    new_height = std::ceil(static_cast<double>(height) * beta / multiple) * multiple;
    new_width = std::ceil(static_cast<double>(width) * beta / multiple) * multiple;
  }
  if (new_height * new_width > kMaxPixels) {
    throw data_error(
        {.error = "the resized image would exceed the pixel limit",
         .where = where,
         .what = fmt::format("{} x {} px (width x height) to {} x {}; at most {} pixels", width,
                             height, new_width, new_height, kMaxPixels),
         .fix = "lower size.longest_edge / max_pixels in the model's preprocessor "
                "configuration, or template.max_pixels; or correct its patch_size and "
                "merge_size"});
  }
  return {.width_px = static_cast<int>(new_width), .height_px = static_cast<int>(new_height)};
}

ImageSize nearest_legal_size(ImageSize size, int side_multiple_px) {
  const auto nearest = [&](int side_px) {
    const int64_t multiple = side_multiple_px;
    return static_cast<int>(std::max<int64_t>(1, (side_px + multiple / 2) / multiple) * multiple);
  };
  return {.width_px = nearest(size.width_px), .height_px = nearest(size.height_px)};
}

}  // namespace rematch
