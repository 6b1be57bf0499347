#pragma once
#include <string>
#include <utility>
#include <vector>

#include "observe/sinks.h"

namespace rematch {

/// Encode `Summary.Value` messages of TensorBoard's event files.
std::string scalar_value(const std::string& tag, float value);
std::string image_value(const std::string& tag, const PngPicture& picture);
/// @param text  Markdown
std::string text_value(const std::string& tag, const std::string& text);
/// Settings of a session for the plug-in `hparams`. Numbers and true/false keep their type, other
/// values are text.
std::string hparams_value(const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace rematch
