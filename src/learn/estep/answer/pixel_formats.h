#pragma once
#include <string>

namespace rematch {

/// True if the numbers of a format are pixels of the resized image.
bool answers_in_pixels(const std::string& format);

}  // namespace rematch
