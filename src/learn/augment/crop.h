#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

/// Keeps a part of a picture, scaled to the whole (a row of augmentations()). The part has the
/// picture's proportions, so nothing is distorted and a prompt keeps its length.
namespace rematch {

/// An object that keeps a smaller share of its area (of its length, if it has no area) is removed;
/// its pixels stay.
inline constexpr double kMinVisible = 0.4;
/// A crop that gives an outline more new vertices is drawn again, so that the length of an answer
/// is bounded. Convex outlines never gain more.
inline constexpr int kMaxNewVertices = 4;

bool crop_is_on(const AugmentSettings& settings);
/// Draws again when every object would be removed or an outline gains too many vertices; after ten
/// draws the picture stays whole.
void draw_crop(const Sample& sample, const AugmentSettings& settings, uint64_t key,
               ImageChange& change);
/// Clips the objects to the part that is kept, in bins of that part, and removes those that keep
/// less than kMinVisible.
void move_to_crop(const ImageChange& change, int width_px, int height_px,
                  std::vector<SceneObject>& objects);
void paint_crop(const ImageChange& change, Image& image);

}  // namespace rematch
