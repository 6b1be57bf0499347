#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

/// Mirrors a picture top to bottom (a row of augmentations()), for pictures without an up and a
/// down: aerial and microscope pictures. Twice is the identity, for pixels and for bins.
namespace rematch {

bool vflip_is_on(const AugmentSettings& settings);
void draw_vflip(const Sample& sample, const AugmentSettings& settings, uint64_t key,
                ImageChange& change);
/// Bin b of y becomes 999 - b (mirror_objects).
void move_upside_down(const ImageChange& change, int width_px, int height_px,
                      std::vector<SceneObject>& objects);
void paint_vflip(const ImageChange& change, Image& image);

}  // namespace rematch
