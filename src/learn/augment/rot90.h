#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

/// Turns a picture by quarters (a row of augmentations()), for pictures without an up and a down:
/// aerial and microscope pictures. A quarter and three quarters swap width and height; the tokens
/// of the picture keep their number, because the image processor treats both sides alike. Four
/// quarters are the identity, for pixels and for bins.
namespace rematch {

bool rot90_is_on(const AugmentSettings& settings);
/// One, two and three quarters are equally likely.
void draw_rot90(const Sample& sample, const AugmentSettings& settings, uint64_t key,
                ImageChange& change);
/// Clockwise by a quarter: (x, y) becomes (999 - y, x). An outline keeps its first vertex and its
/// direction of rotation.
void move_by_quarters(const ImageChange& change, int width_px, int height_px,
                      std::vector<SceneObject>& objects);
void paint_rot90(const ImageChange& change, Image& image);

}  // namespace rematch
