#pragma once
#include <string>

namespace rematch::test {

/// Compares grids, refusals and resized pixels (NAME.rgb) or pixel values (NAME.f32), bit for bit,
/// with what dev/goldens/vision_resize.py wrote into `directory`.
void expect_processed_as_transformers(const std::string& directory);

}  // namespace rematch::test
