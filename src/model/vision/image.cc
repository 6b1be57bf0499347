#include "model/vision/image.h"

#include "base/error.h"
#include "base/file.h"
#include "model/vision/image_formats.h"
#include "model/vision/upright.h"

namespace rematch {

Image black_image(ImageSize size) {
  Image image{.width_px = size.width_px, .height_px = size.height_px, .rgb = {}};
  image.rgb.resize(static_cast<size_t>(size.width_px) * static_cast<size_t>(size.height_px) *
                   kNumChannels);
  return image;
}

Image vision::decode_stored(std::string_view bytes, const ImageHeader& header,
                            const std::string& where) {
  switch (header.format) {
    case ImageFormat::kJpeg: return decode_jpeg(bytes, header, where);
    case ImageFormat::kPng: return decode_png(bytes, header, where);
    case ImageFormat::kWebp: return decode_webp(bytes, header, where);
  }
  REMATCH_CHECK(false, "image format");
}

Image decode_image(std::string_view bytes, const std::string& where) {
  const vision::ImageHeader header = vision::read_image_header(bytes, where);
  return vision::make_upright(vision::decode_stored(bytes, header, where), header.orientation);
}

// Read, not mapped: a file that shrinks while it is mapped would kill the process.
Image load_image(const std::string& path) { return decode_image(read_file(path), path); }

ImageFacts read_image_facts(const std::string& path) {
  const MappedFile file(path);
  const vision::ImageHeader header = vision::read_image_header(file.bytes(), path);
  const StoredImage stored{.size = header.size, .orientation = header.orientation};
  return {.size = stored.upright_size(),
          .is_deep_grey = header.is_deep_grey,
          .orientation = header.orientation};
}

ImageSize ImageFacts::stored_size() const {
  if (!swaps_sides()) return size;
  return {.width_px = size.height_px, .height_px = size.width_px};
}

ImageSize read_image_size(const std::string& path) { return read_image_facts(path).size; }

}  // namespace rematch
