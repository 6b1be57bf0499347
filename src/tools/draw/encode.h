#pragma once
#include <string>

#include "model/vision/image.h"

namespace rematch {

/// The bytes of a PNG file.
/// @throws InternalError when libpng fails
std::string encode_png(const Image& image);

/// The bytes of a JPEG file (baseline).
/// @param quality  1..100
std::string encode_jpeg(const Image& image, int quality = 80);

/// Bytes as base64 (RFC 4648), for data: URLs.
std::string base64(const std::string& bytes);

}  // namespace rematch
