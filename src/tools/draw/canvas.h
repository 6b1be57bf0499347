#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "model/vision/image.h"

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

/// An RGB picture to draw on. Everything outside is clipped.
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
  /// One line of text in DejaVu Sans; characters that it lacks, such as Chinese ones, are boxes.
  void text(int left, int top, std::string_view utf8, Rgb color, int size_px);

 private:
  /// @param coverage  255 replaces the pixel, 0 leaves it
  void blend(int x, int y, Rgb color, int coverage);
  Image image_;
};

/// Size of a line of text in pixels, with room for accents and descenders.
int text_width(std::string_view utf8, int size_px);
int text_height(int size_px);
/// True if the font has all characters of a text.
bool has_glyphs(std::string_view utf8);

}  // namespace rematch
