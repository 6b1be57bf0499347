#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/import/foreign.h"

namespace rematch {

/// Refuses the images of a split whose numbers are evidently in another unit than the one they are
/// read in: normalized in place of pixels, corners in place of x, y, width and height, or beyond
/// the unit of answers.
/// @throws UserError (data) with the numbers and the option that says the unit
void check_units(const std::vector<ForeignImage>& images, std::optional<BoxForm> assumed,
                 const ImportOptions& options, const std::string& jsonl);

/// The scale of the coordinates of an image.
NumberScale coordinate_scale(const ForeignImage& image, const ImportOptions& options);

}  // namespace rematch
