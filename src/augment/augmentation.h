#pragma once
#include <cstdint>
#include <vector>

#include "flow/sample.h"
#include "settings/augment.h"
#include "vision/image.h"

namespace rematch {

/// A kind of change to the pictures of training samples: one file and one row of the table.
struct Augmentation {
  const char* name;
  bool (*is_on)(const AugmentSettings&);
  /// Draws the change for a sample with objects in the picture as far as earlier rows changed
  /// it. Depends on its arguments only. @param key  of the random stream
  void (*draw)(const Sample& sample, const AugmentSettings& settings, uint64_t key,
               ImageChange& change);
  /// Moves the objects; null if the change leaves them where they are.
  void (*move)(const ImageChange& change, int width_px, int height_px,
               std::vector<SceneObject>& objects);
  /// Changes the picture, not its size.
  void (*paint)(const ImageChange& change, Image& image);
};

/// All kinds, in the order of application.
const std::vector<Augmentation>& augmentations();

/// A training sample as an epoch shows it: with the change drawn from (seed, epoch, sample) and its
/// objects in the changed picture. All images of a sample change alike.
Sample augmented(const Sample& sample, const AugmentSettings& settings, uint64_t seed,
                 int64_t epoch);

/// Changes a decoded picture.
void change_image(Image& image, const ImageChange& change);

}  // namespace rematch
