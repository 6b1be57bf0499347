#pragma once
#include <string>
#include <vector>

#include "base/flow/bins.h"
#include "base/flow/sample.h"
#include "model/vision/image.h"
#include "model/vision/smart_resize.h"

// Answers in the format of stock checkpoints (BEHAVIOUR 19.10): a fenced JSON list of
// `{"bbox_2d": [x1, y1, x2, y2], "label": "…"}` with coordinates in plain digits.
namespace rematch {

/// The unit of coordinates in stock answers.
struct StockScale {
  enum class Unit {
    kThousandths,    ///< 0..1000 along each side
    kResizedPixels,  ///< pixels of the image after the processor's resize
    kFilePixels,     ///< pixels of the image file
    kShares          ///< 0..1 along each side; only read
  };
  Unit unit = Unit::kThousandths;
  bool is_assumed = false;  ///< the user did not say the unit: numbers like pixels are refused
  /// Limits of the processor for kResizedPixels; default: stock checkpoints that answer in pixels.
  ResizeLimits resize{.side_multiple_px = 28, .min_pixels = 3136, .max_pixels = 12845056};

  bool is_in_pixels() const { return unit == Unit::kResizedPixels || unit == Unit::kFilePixels; }
};

/// The unit of a record's answers and the size of its image in that unit.
using StockSides = NumberScale;

/// @param file  size of the image file; unused unless the unit is pixels
/// @throws UserError (data) if the image's aspect ratio is too large to resize it
StockSides stock_sides(const StockScale& scale, const ImageSize& file, const std::string& where);

/// Formats the answer for a scene, byte for byte as stock checkpoints do.
/// @param objects  only boxes
std::string format_stock_answer(const Objects& objects, const StockSides& sides);

}  // namespace rematch
