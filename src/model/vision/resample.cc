// Written by hand: no linked library resizes images, and training needs exactly the bits that
// transformers produces (BEHAVIOUR 2.6).
#include "model/vision/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rematch {
namespace {

constexpr double kFilterRadius = 2.0;

// Keys' cubic with a = -0.5.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

// Filter weights along one side: new value i is the weighted sum of `count` old values from `first`
// on.
struct Weights {
  struct Taps {
    int64_t first = 0;
    int64_t count = 0;
  };
  std::vector<Taps> taps;
  // [new length, stride], fixed-point with `shift` bits after the point
  std::vector<int32_t> values;
  int64_t stride = 0;
  int shift = 0;
};

// First difference between the backends: Pillow keeps 22 bits, torchvision as many as fit the
// largest weight into 16 bits.
int choose_shift(const std::vector<double>& weights, ImageBackend backend) {
  constexpr int kPillowBits = 32 - 8 - 2;
  if (backend == ImageBackend::kPil) return kPillowBits;
  const double largest = *std::ranges::max_element(weights);
  int shift = 0;
  while (shift < kPillowBits && static_cast<int>(0.5 + largest * (1 << (shift + 1))) < 1 << 15)
    ++shift;
  return shift;
}

Weights make_weights(int64_t old_length, int64_t new_length, ImageBackend backend) {
  const double scale = static_cast<double>(old_length) / static_cast<double>(new_length);
  const double filter_scale = std::max(scale, 1.0);
  const double radius = kFilterRadius * filter_scale, inverse = 1.0 / filter_scale;
  Weights result;
  result.stride = static_cast<int64_t>(std::ceil(radius)) * 2 + 1;
  std::vector<double> exact(static_cast<size_t>(new_length * result.stride), 0.0);
  for (int64_t i = 0; i < new_length; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - radius + 0.5), 0);
    const int64_t count = std::min(static_cast<int64_t>(center + radius + 0.5), old_length) - first;
    double* const weights = exact.data() + i * result.stride;
    double sum = 0.0;
    for (int64_t k = 0; k < count; ++k) {
      weights[k] = cubic((static_cast<double>(k + first) - center + 0.5) * inverse);
      sum += weights[k];
    }
    if (sum != 0.0) {
      for (int64_t k = 0; k < count; ++k) weights[k] /= sum;
    }
    result.taps.push_back({.first = first, .count = count});
  }
  result.shift = choose_shift(exact, backend);
  for (const double weight : exact) {
    const double fixed = weight * (1 << result.shift);
    result.values.push_back(static_cast<int32_t>(weight < 0 ? fixed - 0.5 : fixed + 0.5));
  }
  return result;
}

uint8_t to_level(int32_t sum, int shift) {
  return static_cast<uint8_t>(std::clamp(sum >> shift, 0, 255));
}

Image resize_width(const Image& image, int width_px, ImageBackend backend) {
  const Weights weights = make_weights(image.width_px, width_px, backend);
  Image result = black_image({.width_px = width_px, .height_px = image.height_px});
  uint8_t* out = result.rgb.data();
  for (int64_t y = 0; y < image.height_px; ++y) {
    const uint8_t* const row = image.rgb.data() + y * image.width_px * kNumChannels;
    for (int64_t x = 0; x < width_px; ++x, out += kNumChannels) {
      const Weights::Taps taps = weights.taps[x];
      const int32_t* const weight = weights.values.data() + x * weights.stride;
      const uint8_t* pixel = row + taps.first * kNumChannels;
      const int32_t half = 1 << (weights.shift - 1);
      int32_t red = half, green = half, blue = half;
      for (int64_t k = 0; k < taps.count; ++k, pixel += kNumChannels) {
        red += pixel[0] * weight[k];
        green += pixel[1] * weight[k];
        blue += pixel[2] * weight[k];
      }
      out[0] = to_level(red, weights.shift);
      out[1] = to_level(green, weights.shift);
      out[2] = to_level(blue, weights.shift);
    }
  }
  return result;
}

Image resize_height(const Image& image, int height_px, ImageBackend backend) {
  const Weights weights = make_weights(image.height_px, height_px, backend);
  Image result = black_image({.width_px = image.width_px, .height_px = height_px});
  const int64_t row_size = image.width_px * kNumChannels;
  std::vector<int32_t> sums(static_cast<size_t>(row_size));
  for (int64_t y = 0; y < height_px; ++y) {
    const Weights::Taps taps = weights.taps[y];
    std::ranges::fill(sums, 1 << (weights.shift - 1));
    for (int64_t k = 0; k < taps.count; ++k) {
      const int32_t weight = weights.values[y * weights.stride + k];
      const uint8_t* const row = image.rgb.data() + (taps.first + k) * row_size;
      for (int64_t i = 0; i < row_size; ++i) sums[i] += row[i] * weight;
    }
    uint8_t* const out = result.rgb.data() + y * row_size;
    for (int64_t i = 0; i < row_size; ++i) out[i] = to_level(sums[i], weights.shift);
  }
  return result;
}

// Second difference: Pillow (from 13) resizes the height first if that removes more than twice as
// many rows as columns. The order affects the result, because values are rounded in between.
bool is_height_first(ImageSize from, ImageSize to, ImageBackend backend) {
  const int64_t rows = int64_t{from.height_px} - to.height_px,
                columns = int64_t{from.width_px} - to.width_px;
  return backend == ImageBackend::kPil && rows > 0 && rows > 2 * columns;
}

}  // namespace

Image resize_bicubic(const Image& image, ImageSize size, ImageBackend backend) {
  REMATCH_CHECK(
      image.width_px > 0 && image.height_px > 0 && size.width_px > 0 && size.height_px > 0,
      "an empty image");
  if (size.width_px == image.width_px) return resize_height(image, size.height_px, backend);
  if (size.height_px == image.height_px) return resize_width(image, size.width_px, backend);
  return is_height_first(image.size(), size, backend)
             ? resize_width(resize_height(image, size.height_px, backend), size.width_px, backend)
             : resize_height(resize_width(image, size.width_px, backend), size.height_px, backend);
}

}  // namespace rematch
