#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

namespace rematch {

/// A kind of change to the pictures of training samples: one row of the table.
struct Augmentation {
  bool (*is_on)(const AugmentSettings&);
  /// Draws the change; depends on its arguments only.
  /// @param sample  with its objects as earlier rows of the table moved them
  /// @param key     of the random stream
  void (*draw)(const Sample& sample, const AugmentSettings& settings, uint64_t key,
               ImageChange& change);
  /// Moves the objects (in bins); null if the change never moves them.
  void (*move)(const ImageChange& change, int width_px, int height_px, Objects& objects);
  /// Changes the picture; its size only by ImageChange::swaps_sides(). Does nothing if the change
  /// was not drawn.
  void (*paint)(const ImageChange& change, Image& image);
};

/// Keeps a part of a picture, scaled to the whole. The part has the picture's proportions, so
/// nothing is distorted and a prompt keeps its length. Draws again when every object would be
/// removed or an outline gains too many vertices; after ten draws the picture stays whole.
extern const Augmentation kCrop;
/// An object that keeps a smaller share of its area (of its length, if it has no area) is removed;
/// its pixels stay.
inline constexpr double kMinVisible = 0.4;
/// A crop that gives an outline more new vertices is drawn again, so that the length of an answer
/// is bounded. Convex outlines never gain more.
inline constexpr int kMaxNewVertices = 4;

/// Mirrors a picture left to right, or top to bottom: bin b becomes 999 - b. Twice is the identity,
/// for pixels and for bins. An outline keeps its first vertex and its direction of rotation.
extern const Augmentation kHflip, kVflip;

/// Turns a picture by one, two or three quarters, each equally likely, for pictures without an up
/// and a down: aerial and microscope pictures. One and three swap width and height; the tokens of
/// the picture keep their number, because the image processor treats both sides alike. Clockwise by
/// a quarter, (x, y) becomes (999 - y, x); an outline keeps its first vertex and its direction of
/// rotation.
extern const Augmentation kRot90;

/// Changes brightness, contrast and saturation, in this order.
extern const Augmentation kColor;

/// Copy of a training sample for an epoch: its change is drawn from (seed, epoch, sample), its
/// objects are moved with the picture, and so are the absent classes in its prompt. All images of a
/// sample change alike. Width and height are those of the changed picture.
Sample augment_sample(const Sample& sample, const AugmentSettings& settings, uint64_t seed,
                      int64_t epoch);

/// Applies a drawn change to a decoded picture.
void change_image(Image& image, const ImageChange& change);

}  // namespace rematch
