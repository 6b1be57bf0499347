#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "vision/image.h"

namespace rematch {

/// A colour.
struct Rgb {
  uint8_t r = 0, g = 0, b = 0;

  bool operator==(const Rgb&) const = default;
};

/// Colours that every picture uses for the same thing.
inline constexpr Rgb kTruthColor{0, 150, 60}, kPredictionColor{215, 30, 40},
    kMatchColor{250, 190, 0}, kWhite{255, 255, 255}, kInk{25, 28, 32}, kPaper{246, 247, 249};

/// A point in pixels; it may lie outside the canvas.
struct Point {
  double x = 0, y = 0;
};

/// An RGB picture to draw on. Whatever lies outside is clipped.
class Canvas {
 public:
  Canvas(int width_px, int height_px, Rgb background);
  explicit Canvas(Image image) : image_(std::move(image)) {}

  int width_px() const { return image_.width_px; }
  int height_px() const { return image_.height_px; }
  const Image& image() const { return image_; }

  void paste(const Image& image, int left, int top);
  void fill(int left, int top, int width, int height, Rgb color);
  void line(Point from, Point to, Rgb color, int thickness = 1);
  /// A closed outline.
  void outline(const std::vector<Point>& points, Rgb color, int thickness = 1);
  /// One line of text in the built-in font (draw/font.h); accents may stand text_rise() above
  /// `top`. @param scale  pixels of a dot, ≥ 1
  void text(int left, int top, std::string_view utf8, Rgb color, int scale = 1);

 private:
  void put(int x, int y, Rgb color);
  Image image_;
};

/// Size of a line of text in pixels. @param scale  as in Canvas::text
int text_width(std::string_view utf8, int scale = 1);
int text_height(int scale = 1);
/// Pixels that the accents of a line stand above its top: 0 for plain ASCII.
int text_rise(std::string_view utf8, int scale = 1);

/// The image in another size: means over the pixels covered when it shrinks, nearest pixels when it
/// grows. Both sides ≥ 1.
Image resized(const Image& image, int width_px, int height_px);

}  // namespace rematch
