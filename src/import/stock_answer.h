#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flow/sample.h"
#include "vision/image.h"
#include "vision/smart_resize.h"

// Answers in the format of stock checkpoints (BEHAVIOUR 19.10): a fenced JSON list of
// `{"bbox_2d": [x1, y1, x2, y2], "label": "…"}` with coordinates in plain digits.
namespace rematch {

/// The unit of coordinates in stock answers.
struct StockScale {
  enum class Unit {
    kThousandths,    ///< 0..1000 along each side
    kResizedPixels,  ///< pixels of the image after the processor's resize
    kFilePixels      ///< pixels of the image file
  };
  Unit unit = Unit::kThousandths;
  /// Limits of the processor for kResizedPixels; default: stock checkpoints that answer in pixels.
  ResizeLimits resize{.side_multiple_px = 28, .min_pixels = 3136, .max_pixels = 12845056};
};

/// The largest coordinate on each axis.
struct StockSides {
  int x = 1000, y = 1000;
};

/// @param file  size of the image file; unused for kThousandths
/// @throws UserError (data) if the image's aspect ratio is too large to resize it
StockSides stock_sides(const StockScale& scale, const ImageSize& file, const std::string& where);

/// Converts a bin to a coordinate of a stock answer: floor(bin · side / 999 + 0.5).
int bin_to_stock(int bin, int side);
/// Converts a coordinate of a stock answer to a bin: floor(value · 999 / side + 0.5).
/// @param value  0..side
int stock_to_bin(double value, int side);

/// Formats the answer for a scene, byte for byte as stock checkpoints do. @param objects  only
/// boxes
std::string format_stock_answer(const std::vector<SceneObject>& objects, const StockSides& sides);

/// The result of read_stock_answer.
struct StockAnswer {
  std::vector<SceneObject> objects;   ///< in bins; corners may be swapped
  std::vector<std::string> problems;  ///< unreadable entries: "entry 2: …"
  int64_t num_boxes = 0;              ///< entries with four numbers
  int64_t num_beyond = 0;             ///< boxes with a number outside 0..side
  double smallest = 0, largest = 0;   ///< over the numbers of all boxes
  bool has_fractions = false;         ///< a number has a decimal point or an exponent

  bool is_empty() const { return objects.empty() && problems.empty(); }
};

/// Reads a list of boxes, or one box, fenced or bare; ignores text after it.
/// @throws UserError (data) for other texts, with the reason in `what`
StockAnswer read_stock_answer(std::string_view text, const StockSides& sides,
                              const std::string& where);

}  // namespace rematch
