#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

/// Mirrors a picture left to right (a row of augmentations()). Twice is the identity, for pixels
/// and for bins.
namespace rematch {

bool hflip_is_on(const AugmentSettings& settings);
void draw_hflip(const Sample& sample, const AugmentSettings& settings, uint64_t key,
                ImageChange& change);
/// Bin b of x becomes 999 - b (mirror_objects).
void move_to_mirror(const ImageChange& change, int width_px, int height_px,
                    std::vector<SceneObject>& objects);
void paint_hflip(const ImageChange& change, Image& image);

}  // namespace rematch
