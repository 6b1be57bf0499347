#pragma once
#include <string>

#include "vision/image.h"

namespace rematch {

/// An image as its file stores it. Cameras store the sensor's pixels and note in EXIF how to turn
/// them; viewers and annotation tools show the turned picture.
struct StoredImage {
  ImageSize size;       ///< of the stored pixels
  int orientation = 1;  ///< EXIF's: 1 is upright, 2..8 are mirrored or turned

  bool is_upright() const { return orientation == 1; }
  /// Size of the picture that viewers show.
  ImageSize upright_size() const;
};

/// Reads the header. @throws UserError as read_image_facts, but takes rotated images
StoredImage read_stored_image(const std::string& path);

/// Decodes the picture that viewers show. @throws UserError as load_image, but takes rotated images
Image load_upright(const std::string& path);

}  // namespace rematch
