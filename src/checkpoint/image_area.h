#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Smallest and largest area of an image that an image processor makes, in pixels.
struct ImageArea {
  int64_t min_pixels = 0, max_pixels = 0;
};

/// The text of a preprocessor_config.json or processor_config.json with this area, in every form in
/// which the file gives it, so that transformers and vLLM resize alike. Text that already gives it
/// stays as it is, byte for byte.
/// @param where  its path, for errors. @throws UserError (data) when it is not JSON
std::string processor_with_area(const std::string& text, const ImageArea& area,
                                const std::string& where);

/// Writes the image-processor files of a model directory with another area into `directory`; none
/// when they already give it. @throws UserError (environment), (data)
void write_image_area(const std::string& model_dir, const std::string& directory,
                      const ImageArea& area);

/// Copies an adapter checkpoint's own image-processor files.
void copy_image_area(const std::string& adapter_dir, const std::string& directory);

/// True when the directory has image-processor files.
bool has_image_processor(const std::string& directory);

}  // namespace rematch
