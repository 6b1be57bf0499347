#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/random.h"
#include "learn/augment/augmentation.h"
#include "learn/augment/clip.h"
#include "model/vision/resample.h"

namespace rematch {
namespace {

constexpr uint64_t kMaxDraws = 10, kNumbersPerDraw = 3;

/// True if an object is left and no outline gains too many vertices.
bool is_usable(const ImageChange& change, const Sample& sample) {
  bool is_any_left = sample.objects.empty();
  for (const SceneObject& object : sample.objects) {
    const std::optional<Geometry> clipped =
        clip_to(object.geometry, change.crop_px, sample.width_px, sample.height_px, kMinVisible);
    if (!clipped) continue;
    const size_t most = object.geometry.bins.size() + 2 * size_t{kMaxNewVertices};
    if (clipped->bins.size() > most) return false;
    is_any_left = true;
  }
  return is_any_left;
}

int64_t part_of(int side_px, double share) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(side_px * share)), 1, side_px);
}

void draw_crop(const Sample& sample, const AugmentSettings& settings, uint64_t key,
               ImageChange& change) {
  for (uint64_t draw = 0; draw < kMaxDraws; ++draw) {
    const uint64_t at = draw * kNumbersPerDraw;
    const double area = settings.crop + (1 - settings.crop) * random_uniform(key, at);
    const int64_t width = part_of(sample.width_px, std::sqrt(area)),
                  height = part_of(sample.height_px, std::sqrt(area));
    const auto place = [&](uint64_t counter, int64_t room) {
      return static_cast<int64_t>(random_below(key, counter, static_cast<uint64_t>(room) + 1));
    };
    change.crop_px = {place(at + 1, sample.width_px - width),
                      place(at + 2, sample.height_px - height), width, height};
    const bool is_whole = width == sample.width_px && height == sample.height_px;
    if (!is_whole && is_usable(change, sample)) return;
    change.crop_px = {};
    if (is_whole) return;
  }
}

void move_to_crop(const ImageChange& change, int width_px, int height_px, Objects& objects) {
  if (!change.has_crop()) return;
  Objects kept;
  for (SceneObject& object : objects) {
    std::optional<Geometry> clipped =
        clip_to(object.geometry, change.crop_px, width_px, height_px, kMinVisible);
    if (clipped) kept.push_back({std::move(object.desc), *std::move(clipped)});
  }
  objects = std::move(kept);
}

void paint_crop(const ImageChange& change, Image& image) {
  if (!change.has_crop()) return;
  const auto [left, top, width, height] = change.crop_px;
  if (left + width > image.width_px || top + height > image.height_px) return;  // not that file
  Image part{.width_px = static_cast<int>(width), .height_px = static_cast<int>(height)};
  part.rgb.reserve(width * height * kNumChannels);
  for (int64_t y = top; y < top + height; ++y) {
    const auto row = image.rgb.begin() + (y * image.width_px + left) * kNumChannels;
    part.rgb.insert(part.rgb.end(), row, row + width * kNumChannels);
  }
  image = resize_bicubic(part, image.size(), ImageBackend::kPil);
}

}  // namespace

const Augmentation kCrop{[](const AugmentSettings& settings) { return settings.crop < 1; },
                         draw_crop, move_to_crop, paint_crop};

}  // namespace rematch
