#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"
#include "model/vision/image.h"

namespace rematch {

/// A kind of change to the pictures of training samples: one file and one row of the table.
struct Augmentation {
  const char* name;
  bool (*is_on)(const AugmentSettings&);
  /// Draws the change; depends on its arguments only.
  /// @param sample  with its objects as earlier rows of the table moved them
  /// @param key     of the random stream
  void (*draw)(const Sample& sample, const AugmentSettings& settings, uint64_t key,
               ImageChange& change);
  /// Moves the objects (in bins); null if the change never moves them.
  void (*move)(const ImageChange& change, int width_px, int height_px,
               std::vector<SceneObject>& objects);
  /// Changes the picture; its size only by ImageChange::swaps_sides(). Does nothing if the change
  /// was not drawn.
  void (*paint)(const ImageChange& change, Image& image);
};

/// All kinds, in the order of application. A row's place also separates its random stream from
/// those of the others, so new rows come last.
const std::vector<Augmentation>& augmentations();

/// Copy of a training sample for an epoch: its change is drawn from (seed, epoch, sample), its
/// objects are moved with the picture. All images of a sample change alike. Width and height are
/// those of the changed picture.
Sample augment_sample(const Sample& sample, const AugmentSettings& settings, uint64_t seed,
                      int64_t epoch);

/// Applies a drawn change to a decoded picture.
void change_image(Image& image, const ImageChange& change);

}  // namespace rematch
