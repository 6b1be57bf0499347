#pragma once
#include <string>

#include "base/observe/sinks.h"

namespace rematch {

/// Encode `Summary.Value` messages of TensorBoard's event files.
std::string scalar_value(const std::string& tag, float value);
std::string image_value(const std::string& tag, const PngPicture& picture);
/// @param text  Markdown
std::string text_value(const std::string& tag, const std::string& text);

}  // namespace rematch
