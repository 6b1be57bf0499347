#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flow/sample.h"
#include "vision/image.h"
#include "vision/smart_resize.h"

/// Answers as stock checkpoints write them (BEHAVIOUR 19.10): a fenced JSON list of
/// `{"bbox_2d": [x1, y1, x2, y2], "label": "…"}` with coordinates in plain digits.
namespace rematch {

/// The unit of written coordinates.
struct StockScale {
  enum class Unit {
    kThousandths,    ///< 0..1000 of the image's side
    kResizedPixels,  ///< pixels of the image as the processor resizes it
    kFilePixels      ///< pixels of the image file
  };
  Unit unit = Unit::kThousandths;
  /// The processor of kResizedPixels; here that of stock checkpoints which answer in pixels.
  ResizeLimits resize{.side_multiple_px = 28, .min_pixels = 3136, .max_pixels = 12845056};
};

/// The largest coordinate of each axis.
struct StockSides {
  int x = 1000, y = 1000;
};

/// @param file  size of the image file; not looked at for kThousandths
/// @throws UserError (data) for an image that is too long and thin to be resized
StockSides stock_sides(const StockScale& scale, const ImageSize& file, const std::string& where);

/// The number that stands for a bin: floor(bin · side / 999 + 0.5).
int written_of_bin(int bin, int side);
/// The bin of a written number: floor(value · 999 / side + 0.5). @param value  0..side
int bin_of_written(double value, int side);

/// The answer for a scene, byte for byte as they write it. @param objects  boxes only
std::string stock_answer_text(const std::vector<SceneObject>& objects, const StockSides& sides);

/// An answer that was read.
struct StockAnswer {
  std::vector<SceneObject> objects;   ///< in bins; corners may be swapped
  std::vector<std::string> problems;  ///< entries that could not be read: "entry 2: …"
  int64_t num_boxes = 0;              ///< entries with four numbers
  int64_t num_beyond = 0;             ///< of them, with a number outside 0..side
  double smallest = 0, largest = 0;   ///< numbers in any box
  bool has_fractions = false;         ///< a number is written with a point or an exponent

  bool is_empty() const { return objects.empty() && problems.empty(); }
};

/// Reads a list of boxes, or one box, fenced or bare; what follows the list is ignored.
/// @throws UserError (data) when the text is neither, with the reason in `what`
StockAnswer read_stock_answer(std::string_view text, const StockSides& sides,
                              const std::string& where);

}  // namespace rematch
