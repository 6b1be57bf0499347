#pragma once
#include <string>

namespace rematch::test {

/// Compares every image of a directory that dev/goldens/vision_images.py wrote with what Pillow
/// read, bit for bit; the refused ones must fail with a data error in the words of the manifest.
void expect_images_as_pillow(const std::string& directory);

/// Compares patchify with pixel_qwen3.f32 and pixel_clip.f32 of that directory, bit for bit.
void expect_pixel_values_as_transformers(const std::string& directory);

}  // namespace rematch::test
