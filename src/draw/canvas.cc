#include "draw/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "draw/font.h"

namespace rematch {

Canvas::Canvas(int width_px, int height_px, Rgb background) {
  REMATCH_CHECK(width_px >= 1 && height_px >= 1, "a canvas has pixels");
  image_.width_px = width_px;
  image_.height_px = height_px;
  image_.rgb.resize(static_cast<size_t>(width_px) * static_cast<size_t>(height_px) * 3);
  fill(0, 0, width_px, height_px, background);
}

void Canvas::put(int x, int y, Rgb color) {
  if (x < 0 || y < 0 || x >= width_px() || y >= height_px()) return;
  uint8_t* const pixel =
      image_.rgb.data() +
      (static_cast<size_t>(y) * static_cast<size_t>(width_px()) + static_cast<size_t>(x)) * 3;
  pixel[0] = color.r;
  pixel[1] = color.g;
  pixel[2] = color.b;
}

void Canvas::paste(const Image& image, int left, int top) {
  for (int y = std::max(0, -top); y < std::min(image.height_px, height_px() - top); ++y) {
    const int from = std::max(0, -left), to = std::min(image.width_px, width_px() - left);
    if (from >= to) return;
    const size_t source =
        (static_cast<size_t>(y) * static_cast<size_t>(image.width_px) + static_cast<size_t>(from)) *
        3;
    const size_t target = (static_cast<size_t>(y + top) * static_cast<size_t>(width_px()) +
                           static_cast<size_t>(from + left)) *
                          3;
    std::memcpy(image_.rgb.data() + target, image.rgb.data() + source,
                static_cast<size_t>(to - from) * 3);
  }
}

void Canvas::fill(int left, int top, int width, int height, Rgb color) {
  for (int y = std::max(0, top); y < std::min(height_px(), top + height); ++y) {
    for (int x = std::max(0, left); x < std::min(width_px(), left + width); ++x) put(x, y, color);
  }
}

void Canvas::line(Point from, Point to, Rgb color, int thickness) {
  const double length = std::max(std::fabs(to.x - from.x), std::fabs(to.y - from.y));
  const int num_steps = static_cast<int>(std::min(std::ceil(length), 1e5));
  for (int step = 0; step <= num_steps; ++step) {
    const double t = num_steps == 0 ? 0 : static_cast<double>(step) / num_steps;
    const int x = static_cast<int>(std::floor(from.x + t * (to.x - from.x))),
              y = static_cast<int>(std::floor(from.y + t * (to.y - from.y)));
    fill(x - (thickness - 1) / 2, y - (thickness - 1) / 2, thickness, thickness, color);
  }
}

void Canvas::outline(const std::vector<Point>& points, Rgb color, int thickness) {
  for (size_t i = 0; i < points.size(); ++i)
    line(points[i], points[(i + 1) % points.size()], color, thickness);
}

void Canvas::text(int left, int top, std::string_view utf8, Rgb color, int scale) {
  for (size_t offset = 0; offset < utf8.size(); left += kGlyphStep * scale) {
    const char32_t code_point = next_code_point(utf8, offset);
    for (int row = -kGlyphRise; row < kGlyphHeight; ++row) {
      const unsigned dots = glyph_row(code_point, row);
      for (int column = 0; column < kGlyphWidth; ++column) {
        if ((dots >> (kGlyphWidth - 1 - column) & 1u) != 0)
          fill(left + column * scale, top + row * scale, scale, scale, color);
      }
    }
  }
}

int text_width(std::string_view utf8, int scale) {
  int num_glyphs = 0;
  for (size_t offset = 0; offset < utf8.size(); ++num_glyphs) next_code_point(utf8, offset);
  return num_glyphs * kGlyphStep * scale;
}

int text_height(int scale) { return kGlyphHeight * scale; }

int text_rise(std::string_view utf8, int scale) {
  int rise = 0;
  for (size_t offset = 0; offset < utf8.size();) {
    const char32_t code_point = next_code_point(utf8, offset);
    for (int row = rise + 1; row <= kGlyphRise; ++row) {
      if (glyph_row(code_point, -row) != 0) rise = row;
    }
  }
  return rise * scale;
}

namespace {

/// Source pixels [first, last) that target pixel `at` covers.
std::pair<int, int> covered(int at, int target, int source) {
  const auto from = static_cast<int>(static_cast<int64_t>(at) * source / target);
  const auto to = static_cast<int>(static_cast<int64_t>(at + 1) * source / target);
  return {from, std::max(from + 1, to)};
}

}  // namespace

Image resized(const Image& image, int width_px, int height_px) {
  if (image.width_px == width_px && image.height_px == height_px) return image;
  Image small{.width_px = width_px, .height_px = height_px, .rgb = {}};
  small.rgb.reserve(static_cast<size_t>(width_px) * static_cast<size_t>(height_px) * 3);
  for (int y = 0; y < height_px; ++y) {
    const auto [top, bottom] = covered(y, height_px, image.height_px);
    for (int x = 0; x < width_px; ++x) {
      const auto [left, right] = covered(x, width_px, image.width_px);
      for (size_t channel = 0; channel < 3; ++channel) {
        uint64_t sum = 0;
        for (int v = top; v < bottom; ++v) {
          for (int u = left; u < right; ++u)
            sum += image.rgb[(static_cast<size_t>(v) * static_cast<size_t>(image.width_px) +
                              static_cast<size_t>(u)) *
                                 3 +
                             channel];
        }
        const auto count =
            static_cast<uint64_t>(bottom - top) * static_cast<uint64_t>(right - left);
        small.rgb.push_back(static_cast<uint8_t>((sum + count / 2) / count));
      }
    }
  }
  return small;
}

}  // namespace rematch
