#include "augment/color.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"

namespace rematch {
namespace {

constexpr int64_t kUnit = 1000;  // a factor of 1

/// from + (value - from)·factor, rounded, within 0..255. Integers: the same bits everywhere.
uint8_t blend(int64_t from, int64_t value, int64_t factor) {
  const int64_t scaled = from * kUnit + (value - from) * factor;
  return static_cast<uint8_t>(std::clamp<int64_t>((scaled + kUnit / 2) / kUnit, 0, 255));
}

/// Brightness of a colour, as in ITU-R 601.
int64_t grey_of(const uint8_t* rgb) {
  return (299 * int64_t{rgb[0]} + 587 * int64_t{rgb[1]} + 114 * int64_t{rgb[2]} + 500) / 1000;
}

int64_t mean_grey(const Image& image) {
  int64_t sum = 0;
  for (size_t i = 0; i + 2 < image.rgb.size(); i += 3) sum += grey_of(&image.rgb[i]);
  const int64_t count = std::max<int64_t>(1, int64_t{image.width_px} * image.height_px);
  return (sum + count / 2) / count;
}

void apply_levels(Image& image, int64_t from, int64_t factor) {
  std::array<uint8_t, 256> level{};
  for (size_t value = 0; value < level.size(); ++value)
    level[value] = blend(from, static_cast<int64_t>(value), factor);
  for (uint8_t& value : image.rgb) value = level[value];
}

}  // namespace

bool color_is_on(const AugmentSettings& settings) { return settings.color > 0; }

void draw_color(const Sample&, const AugmentSettings& settings, uint64_t key, ImageChange& change) {
  for (size_t i = 0; i < change.color.size(); ++i) {
    const double factor = 1 + settings.color * (2 * random_uniform(key, i) - 1);
    change.color[i] = std::llround(factor * kUnit);
  }
}

void paint_color(const ImageChange& change, Image& image) {
  const auto [brightness, contrast, saturation] = change.color;
  if (brightness != kUnit) apply_levels(image, 0, brightness);
  if (contrast != kUnit) apply_levels(image, mean_grey(image), contrast);
  if (saturation == kUnit) return;
  for (size_t i = 0; i + 2 < image.rgb.size(); i += 3) {
    uint8_t* rgb = &image.rgb[i];
    const int64_t grey = grey_of(rgb);
    for (size_t c = 0; c < 3; ++c) rgb[c] = blend(grey, rgb[c], saturation);
  }
}

}  // namespace rematch
