#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "learn/augment/augmentation.h"

namespace rematch {
namespace {

constexpr int64_t kUnit = 1000;  // a factor of 1

/// distance·factor, rounded, halves up. Integers: the same bits everywhere.
int scale(int distance, int64_t factor) {
  const int64_t thousandths = distance * factor + kUnit / 2;
  const int64_t rounded = thousandths / kUnit;
  return static_cast<int>(rounded * kUnit > thousandths ? rounded - 1 : rounded);  // floor
}

uint8_t as_level(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

/// Grey of a colour, as Pillow's.
int grey_of(const uint8_t* rgb) {
  return (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16;
}

int mean_grey(const Image& image) {
  int64_t sum = 0;
  for (size_t i = 0; i + 2 < image.rgb.size(); i += 3) sum += grey_of(&image.rgb[i]);
  const int64_t count = std::max<int64_t>(1, int64_t{image.width_px} * image.height_px);
  return static_cast<int>((sum + count / 2) / count);
}

/// Moves every level away from, or towards, one of them.
void stretch_levels(Image& image, int from, int64_t factor) {
  std::array<uint8_t, 256> level{};
  for (int value = 0; value < 256; ++value)
    level[value] = as_level(from + scale(value - from, factor));
  for (uint8_t& value : image.rgb) value = level[value];
}

/// Moves every channel away from, or towards, its pixel's grey.
void stretch_colors(Image& image, int64_t factor) {
  std::array<int, 511> distance{};
  for (size_t i = 0; i < distance.size(); ++i)
    distance[i] = scale(static_cast<int>(i) - 255, factor);
  for (size_t i = 0; i + 2 < image.rgb.size(); i += 3) {
    uint8_t* rgb = &image.rgb[i];
    const int grey = grey_of(rgb);
    for (size_t c = 0; c < 3; ++c)
      rgb[c] = as_level(grey + distance[size_t{255} + rgb[c] - static_cast<size_t>(grey)]);
  }
}

void draw_color(const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
  for (size_t i = 0; i < change.color.size(); ++i) {
    const double factor = 1 + settings.color * (2 * random_uniform(key, i) - 1);
    change.color[i] = std::llround(factor * kUnit);
  }
}

void paint_color(const ImageChange& change, Image& image) {
  const auto [brightness, contrast, saturation] = change.color;
  if (brightness != kUnit) stretch_levels(image, 0, brightness);
  if (contrast != kUnit) stretch_levels(image, mean_grey(image), contrast);
  if (saturation != kUnit) stretch_colors(image, saturation);
}

}  // namespace

const Augmentation kColor{[](const AugmentSettings& settings) { return settings.color > 0; },
                          draw_color, nullptr, paint_color};

}  // namespace rematch
