#pragma once
#include <string>

#include "model/vision/image.h"

namespace rematch {

/// An image as stored in its file. Cameras store the sensor's pixels and record their orientation
/// in EXIF; viewers and annotation tools show the image upright.
struct StoredImage {
  ImageSize size;       ///< of the stored pixels
  int orientation = 1;  ///< EXIF's: 1 is upright, 2..8 are mirrored or rotated

  bool is_upright() const { return orientation == 1; }
  /// Size as viewers show it.
  ImageSize upright_size() const;
};

/// Reads the header.
/// @throws UserError as read_image_facts
StoredImage read_stored_image(const std::string& path);

}  // namespace rematch
