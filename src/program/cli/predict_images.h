#pragma once
#include <string>
#include <vector>

#include "base/observe/terminal.h"

namespace rematch {

/// Lists images: files as given, and the JPEG, PNG and WebP files of directories, by name; warns of
/// images of other kinds there. Includes broken links, which Predictor::predict() reports as
/// unreadable.
/// @throws UserError (environment) for a path that does not exist, (data) when there is none
Strings list_images(const Strings& paths, Terminal& terminal);

}  // namespace rematch
