#include "tools/draw/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace rematch {
namespace {

size_t offset_of(const Image& image, int x, int y) {
  return (static_cast<size_t>(y) * static_cast<size_t>(image.width_px) + static_cast<size_t>(x)) *
         3;
}

}  // namespace

Canvas::Canvas(int width_px, int height_px, Rgb background) {
  REMATCH_CHECK(width_px >= 1 && height_px >= 1, "a canvas has pixels");
  image_.width_px = width_px;
  image_.height_px = height_px;
  image_.rgb.resize(offset_of(image_, 0, height_px));
  fill(0, 0, width_px, height_px, background);
}

void Canvas::blend(int x, int y, Rgb color, int coverage) {
  if (x < 0 || y < 0 || x >= width_px() || y >= height_px()) return;
  uint8_t* const pixel = image_.rgb.data() + offset_of(image_, x, y);
  const uint8_t ink[] = {color.r, color.g, color.b};
  for (size_t c = 0; c < 3; ++c)
    pixel[c] = static_cast<uint8_t>((ink[c] * coverage + pixel[c] * (255 - coverage)) / 255);
}

void Canvas::paste(const Image& image, int left, int top) {
  const int from = std::max(0, -left), to = std::min(image.width_px, width_px() - left);
  if (from >= to) return;
  for (int y = std::max(0, -top); y < std::min(image.height_px, height_px() - top); ++y)
    std::memcpy(image_.rgb.data() + offset_of(image_, from + left, y + top),
                image.rgb.data() + offset_of(image, from, y), static_cast<size_t>(to - from) * 3);
}

void Canvas::fill(int left, int top, int width, int height, Rgb color) {
  for (int y = std::max(0, top); y < std::min(height_px(), top + height); ++y) {
    for (int x = std::max(0, left); x < std::min(width_px(), left + width); ++x)
      blend(x, y, color, 255);
  }
}

void Canvas::line(Point from, Point to, Rgb color, int thickness) {
  const double length = std::max(std::fabs(to.x - from.x), std::fabs(to.y - from.y));
  const int num_steps = std::max(1, static_cast<int>(std::min(std::ceil(length), 1e5)));
  const int reach = (thickness - 1) / 2;
  for (int step = 0; step <= num_steps; ++step) {
    const double t = static_cast<double>(step) / num_steps;
    const int x = static_cast<int>(std::floor(from.x + t * (to.x - from.x)));
    const int y = static_cast<int>(std::floor(from.y + t * (to.y - from.y)));
    fill(x - reach, y - reach, thickness, thickness, color);
  }
}

void Canvas::outline(const std::vector<Point>& points, Rgb color, int thickness) {
  for (size_t i = 0; i < points.size(); ++i)
    line(points[i], points[(i + 1) % points.size()], color, thickness);
}

}  // namespace rematch
