#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Smallest and largest area that an image processor resizes images to, in pixels.
struct ImageArea {
  int64_t min_pixels = 0, max_pixels = 0;
};

/// The text of a preprocessor_config.json or processor_config.json with this area in every field
/// that states it, so that transformers and vLLM resize alike. Text that already has this area is
/// returned unchanged.
/// @param where  its path, for errors.
/// @throws UserError (data) if it is not JSON
std::string processor_with_area(const std::string& text, const ImageArea& area,
                                const std::string& where);

/// Writes the image-processor files of a model directory with this area into `directory`.
/// @throws UserError (environment), (data)
void write_image_area(const std::string& model_dir, const std::string& directory,
                      const ImageArea& area);

/// Copies the image-processor files of an adapter checkpoint.
void copy_image_area(const std::string& adapter_dir, const std::string& directory);

/// True if the directory has image-processor files.
bool has_image_processor(const std::string& directory);

}  // namespace rematch
