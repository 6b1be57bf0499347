#pragma once
#include <string>

namespace rematch::test {

/// Checks a directory of dev/goldens/vision_suite.py: pixel values, grids and numbers of image
/// tokens of both families, the last two from headers alone; and the errors of what is refused.
void expect_suite_as_auto_processor(const std::string& directory);

}  // namespace rematch::test
