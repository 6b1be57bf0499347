#pragma once
#include <string>
#include <utility>
#include <vector>

#include "observe/sinks.h"

namespace rematch {

/// Bytes of `Summary.Value` messages of TensorBoard's event files.
std::string scalar_value(const std::string& tag, float value);
std::string image_value(const std::string& tag, const PngPicture& picture);
/// @param text  Markdown
std::string text_value(const std::string& tag, const std::string& text);
/// The plug-in `hparams`: what a session was started with. Numbers and true/false are of their
/// kinds, everything else is text.
std::string hparams_value(const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace rematch
